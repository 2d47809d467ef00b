package operators

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

func zundokoOperator() Operator {
	return Operator{
		Name:             "zundoko",
		Summary:          "a Hikawa sings Zun and Doko until four Zun and a Doko come in a row, then Kiyoshi!",
		Source:           "Zundoko Kiyoshi with a Kubernetes Operator (Kubebuilder, 2019)",
		AddToScheme:      zundoko.AddToScheme,
		Manifests:        zundoko.Manifests(),
		Namespace:        "zundoko-operator-system",
		ServiceAccount:   "controller-manager",
		LeaderElectionID: zundoko.LeaderElectionID,
		New: func() Instance {
			return &zundokoInstance{
				options: zundoko.Options{Variant: zundoko.Hardened},
				demo:    &zundokoDemo{},
			}
		},
	}
}

type zundokoInstance struct {
	options zundoko.Options
	demo    *zundokoDemo
}

func (z *zundokoInstance) Flags(fs *pflag.FlagSet) {
	fs.Var(oneOf{(*string)(&z.options.Variant), []string{string(zundoko.Hardened), string(zundoko.Classic)}},
		"variant", "which of the two operators: hardened, or classic as published, with its flaws")
	fs.Int64Var(&z.options.Seed, "seed", 0, "seed of the words, for a run that can be repeated (0: a new song each time)")
	fs.Var(song{&z.options.Song}, "song", "say these words instead of random ones, such as Zun,Zun,Zun,Zun,Doko; starts again at its end")
}

func (z *zundokoInstance) Variant() string { return string(z.options.Variant) }

func (z *zundokoInstance) CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return zundoko.CRDs(z.options.Variant)
}

func (z *zundokoInstance) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	options := z.options
	options.Controller = o
	return zundoko.SetupWithManager(mgr, options)
}

func (z *zundokoInstance) Demo() Demo { return z.demo }

// zundokoDemo is the song of the sample Hikawa.
type zundokoDemo struct {
	interval time.Duration
}

func (d *zundokoDemo) Flags(fs *pflag.FlagSet) {
	fs.DurationVar(&d.interval, "interval", 500*time.Millisecond, "pause between words, a whole number of milliseconds")
}

func (d *zundokoDemo) Values() (map[string]any, error) {
	if d.interval < time.Millisecond || d.interval%time.Millisecond != 0 {
		return nil, fmt.Errorf("--interval %v is not a whole number of milliseconds from 1ms", d.interval)
	}
	return map[string]any{"interval": d.interval.Milliseconds()}, nil
}

// captions are the words as they are sung.
var captions = map[string]string{"Zun": "ズン", "Doko": "ドコ", "Kiyoshi!": "キ・ヨ・シ！"}

func (d *zundokoDemo) Caption(kind string, object json.RawMessage) string {
	if kind != "Zundoko" && kind != "Kiyoshi" {
		return ""
	}
	var said struct{ Spec struct{ Say string } }
	if json.Unmarshal(object, &said) != nil {
		return ""
	}
	return captions[said.Spec.Say]
}

func (d *zundokoDemo) Summary(ctx context.Context, r client.Reader, choose func(english, japanese string) string) ([][2]string, error) {
	var words v1beta1.ZundokoList
	var kiyoshis v1beta1.KiyoshiList
	err := errors.Join(
		r.List(ctx, &words, client.InNamespace(metav1.NamespaceDefault)),
		r.List(ctx, &kiyoshis, client.InNamespace(metav1.NamespaceDefault)),
	)
	if err != nil {
		return nil, err
	}
	sung := make([]string, 0, len(words.Items))
	for _, word := range words.Items { // listed by name, which is by number
		sung = append(sung, captions[string(word.Spec.Say)])
	}
	for range kiyoshis.Items {
		sung = append(sung, captions["Kiyoshi!"])
	}
	return [][2]string{
		{choose("song", "歌"), strings.Join(sung, " ")},
		{choose("words", "語数"), strconv.Itoa(len(words.Items))},
	}, nil
}

// oneOf is a flag that takes one of a few words.
type oneOf struct {
	value   *string
	choices []string
}

func (o oneOf) String() string {
	if o.value == nil {
		return ""
	}
	return *o.value
}

func (o oneOf) Type() string { return strings.Join(o.choices, "|") }

// Choices are the words, for completions.
func (o oneOf) Choices() []string { return o.choices }

func (o oneOf) Set(s string) error {
	if slices.Contains(o.choices, s) {
		*o.value = s
		return nil
	}
	return fmt.Errorf("use one of %s", strings.Join(o.choices, ", "))
}

// song is a flag that takes a list of words.
type song struct{ words *[]v1beta1.Word }

func (s song) String() string {
	if s.words == nil {
		return ""
	}
	text := make([]string, len(*s.words))
	for i, word := range *s.words {
		text[i] = string(word)
	}
	return strings.Join(text, ",")
}

func (song) Type() string { return "words" }

func (s song) Set(text string) (err error) {
	*s.words, err = zundoko.ParseSong(text)
	return err
}
