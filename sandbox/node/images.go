package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageService holds the images that the node has pulled. They have no content: their sizes are 0, and their IDs and digests
// are derived from their names, so that they are the same on all nodes at all times.
type imageService struct {
	runtime *Runtime

	mu     sync.Mutex
	pulled map[string]*image // by full name
}

type image struct {
	// name is the full name, such as docker.io/library/nginx:latest.
	name string
	id   string
	// digest is the name with a digest instead of a tag.
	digest string
	// user is the ID of the user that it runs as.
	user int64
}

func newImageService(r *Runtime) *imageService {
	return &imageService{runtime: r, pulled: map[string]*image{}}
}

func newImage(name string) *image {
	repository, digest, pinned := strings.Cut(name, "@")
	if !pinned {
		digest = "sha256:" + hash("manifest", name)
	}
	if slash := strings.LastIndexByte(repository, '/'); strings.Contains(repository[slash+1:], ":") {
		repository = repository[:strings.LastIndexByte(repository, ':')]
	}
	return &image{name: name, id: "sha256:" + hash("image", name), digest: repository + "@" + digest}
}

func hash(of, name string) string {
	sum := sha256.Sum256([]byte("operator-lab " + of + " " + name))
	return hex.EncodeToString(sum[:])
}

func (i *image) tags() []string {
	if strings.Contains(i.name, "@") {
		return nil
	}
	return []string{i.name}
}

func (i *image) describe() *runtimeapi.Image {
	return &runtimeapi.Image{
		Id: i.id, RepoTags: i.tags(), RepoDigests: []string{i.digest},
		Spec: &runtimeapi.ImageSpec{Image: i.name},
		// The kubelet uses it for pods with runAsNonRoot.
		Uid: &runtimeapi.Int64Value{Value: i.user},
	}
}

// find returns a pulled image by any of its names.
func (im *imageService) find(name string) *image {
	im.mu.Lock()
	defer im.mu.Unlock()
	if i := im.pulled[name]; i != nil {
		return i
	}
	for _, i := range im.pulled {
		if name == i.id || name == i.digest {
			return i
		}
	}
	return nil
}

// ListImages lists the pulled images.
func (im *imageService) ListImages(_ context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	if name := filter.GetImage().GetImage(); name != "" {
		if i := im.known(name); i != nil {
			return []*runtimeapi.Image{i.describe()}, nil
		}
		return nil, nil
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	var list []*runtimeapi.Image
	for _, i := range im.pulled {
		list = append(list, i.describe())
	}
	slices.SortFunc(list, func(a, b *runtimeapi.Image) int { return strings.Compare(a.Spec.Image, b.Spec.Image) })
	return list, nil
}

// known returns a pulled image by any name that a pod may use.
func (im *imageService) known(name string) *image {
	if i := im.find(name); i != nil {
		return i
	}
	found, err := im.runtime.options.Catalogue.Lookup(name)
	if err != nil {
		return nil
	}
	return im.find(found.Name)
}

// ImageStatus returns an empty status for an image that was not pulled.
func (im *imageService) ImageStatus(
	_ context.Context, spec *runtimeapi.ImageSpec, _ bool,
) (*runtimeapi.ImageStatusResponse, error) {
	i := im.known(spec.GetImage())
	if i == nil {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: i.describe()}, nil
}

// PullImage pulls an image: with the delay or error of the catalogue, and of any [Trouble].
func (im *imageService) PullImage(
	ctx context.Context, spec *runtimeapi.ImageSpec, _ *runtimeapi.AuthConfig, pod *runtimeapi.PodSandboxConfig,
) (string, error) {
	found, err := im.runtime.options.Catalogue.Lookup(spec.GetImage())
	if err != nil {
		return "", status.Errorf(codes.InvalidArgument, "failed to parse image reference %q: %v", spec.GetImage(), err)
	}
	trouble := func() Trouble { return im.runtime.troubles.pulling(pod, found.Name) }
	if err := im.runtime.wait(ctx, func() time.Duration { return found.Pull.Delay + trouble().PullDelay }); err != nil {
		return "", pullError(found.Name, status.Convert(err).Message(), codes.Canceled)
	}
	reason := found.Pull.Error
	if wrong := trouble().PullError; wrong != "" {
		reason = wrong
	}
	if reason == "" && found.Make != nil {
		if err := found.Make(ctx); err != nil {
			return "", status.Errorf(codes.Unknown, "failed to build image %q: %v", found.Name, err)
		}
	}
	if reason != "" {
		return "", pullError(found.Name, reason, codes.Unknown)
	}
	i := newImage(found.Name)
	i.user = found.User
	im.mu.Lock()
	defer im.mu.Unlock()
	im.pulled[i.name] = i
	return i.id, nil
}

// pullError returns an error in containerd's words. An image that no registry has is NotFound.
func pullError(name, reason string, code codes.Code) error {
	if strings.HasSuffix(reason, "not found") {
		code = codes.NotFound
	}
	if strings.HasPrefix(reason, "failed to pull") {
		return status.Error(code, reason)
	}
	if reason == "not found" {
		reason = name + ": not found"
	}
	return status.Errorf(code, "failed to pull and unpack image %q: failed to resolve reference %q: %s", name, name, reason)
}

// wait waits for as long as is asked for, or less when the caller or the runtime ends; see delay.
func (r *Runtime) wait(ctx context.Context, asked func() time.Duration) error {
	if r.delay(ctx.Done(), asked) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errClosed
}

// RemoveImage forgets an image.
func (im *imageService) RemoveImage(_ context.Context, spec *runtimeapi.ImageSpec) error {
	i := im.known(spec.GetImage())
	if i == nil {
		return nil
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	delete(im.pulled, i.name)
	return nil
}

// ImageFsInfo reports that images use no space: nothing is stored.
func (im *imageService) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	usage := []*runtimeapi.FilesystemUsage{{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: im.runtime.options.Dir},
		UsedBytes:  &runtimeapi.UInt64Value{},
		InodesUsed: &runtimeapi.UInt64Value{},
	}}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
}

// Close does nothing: [Runtime.Close] ends everything.
func (im *imageService) Close(context.Context) error { return nil }
