package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

func TestImages(t *testing.T) {
	m := newMachine(t)
	im := m.Images()
	spec := func(name string) *runtimeapi.ImageSpec { return &runtimeapi.ImageSpec{Image: name} }
	if s, err := im.ImageStatus(t.Context(), spec("waits"), false); err != nil || s.Image != nil {
		t.Errorf("before it was pulled: %v, %v", s, err)
	}
	id, err := im.PullImage(t.Context(), spec("waits:latest"), nil, nil)
	if err != nil || !strings.HasPrefix(id, "sha256:") || len(id) != len("sha256:")+64 {
		t.Fatal(id, err)
	}
	for _, name := range []string{"waits", "waits:latest", "docker.io/library/waits:latest", id} {
		if s, err := im.ImageStatus(t.Context(), spec(name), false); err != nil || s.Image.GetId() != id {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	list, err := im.ListImages(t.Context(), nil)
	if err != nil || len(list) != 1 || list[0].RepoTags[0] != "docker.io/library/waits:latest" ||
		!strings.HasPrefix(list[0].RepoDigests[0], "docker.io/library/waits@sha256:") {
		t.Errorf("list %v, %v", list, err)
	}
	if again, err := newMachine(t).Images().PullImage(t.Context(), spec("waits"), nil, nil); err != nil || again != id {
		t.Errorf("another node says %q, %v", again, err)
	}
	if err := im.RemoveImage(t.Context(), spec(id)); err != nil {
		t.Fatal(err)
	}
	if s, err := im.ImageStatus(t.Context(), spec("waits"), false); err != nil || s.Image != nil {
		t.Errorf("after it was removed: %v, %v", s, err)
	}
	if info, err := im.ImageFsInfo(t.Context()); err != nil || len(info.ImageFilesystems) != 1 {
		t.Errorf("file system: %v, %v", info, err)
	}
}

func TestImagesThatCannotBePulled(t *testing.T) {
	m := newMachine(t)
	m.images["private"] = images.Image{Pull: images.Pull{Error: "pull access denied, repository does not exist or may require authorization"}}
	m.images["slow"] = images.Image{Pull: images.Pull{Delay: time.Hour}}
	for name, want := range map[string]string{
		"app:notfound": `rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/app:notfound": ` +
			`failed to resolve reference "docker.io/library/app:notfound": docker.io/library/app:notfound: not found`,
		"private": `rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/private:latest": ` +
			`failed to resolve reference "docker.io/library/private:latest": pull access denied, repository does not exist or may require authorization`,
	} {
		if _, err := m.Images().PullImage(t.Context(), &runtimeapi.ImageSpec{Image: name}, nil, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
	}
	if _, err := m.Images().PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "not a name"}, nil, nil); status.Code(err) != codes.InvalidArgument {
		t.Errorf("not a name: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := m.Images().PullImage(ctx, &runtimeapi.ImageSpec{Image: "slow"}, nil, nil); err == nil {
		t.Error("a pull that was given up succeeded")
	}
}
