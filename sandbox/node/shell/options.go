package shell

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// options are the options of a command line, as [parse] found them.
type options struct {
	// values are the options that were given: their values in order, by letter, or by name for one without a letter. One
	// that takes no value has as many empty ones as it was given.
	values map[string][]string
	// names are the arguments that are no options.
	names []string
}

// has reports whether one of the options was given.
func (o options) has(options ...string) bool {
	for _, name := range options {
		if len(o.values[name]) > 0 {
			return true
		}
	}
	return false
}

// value returns the last value of an option.
func (o options) value(option string) (text string, given bool) {
	all := o.values[option]
	if len(all) == 0 {
		return "", false
	}
	return all[len(all)-1], true
}

// problemWith is an option that a command does not know, or that has no value.
type problemWith struct {
	option  string
	noValue bool
}

func (e *problemWith) Error() string {
	if e.noValue {
		return "option requires an argument -- '" + strings.TrimLeft(e.option, "-") + "'"
	}
	return "unrecognized option: " + e.option
}

// parse reads the arguments of a command. known lists its options, separated by spaces: a letter, a name, or a letter and
// names with commas between; a colon at the end: it takes a value. A plus sign at the beginning: what follows the first
// argument that is no option is not looked at, because it belongs to another command. Letters can be combined, and a
// value can follow its letter at once.
func parse(argv []string, known string) (options, error) {
	o := options{values: map[string][]string{}}
	set := pflag.NewFlagSet(argv[0], pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	known, first := strings.CutPrefix(known, "+")
	set.SetInterspersed(!first)
	for one := range strings.FieldsSeq(known) {
		one, takes := strings.CutSuffix(one, ":")
		key, _, _ := strings.Cut(one, ",")
		for i, name := range strings.Split(one, ",") {
			letter := ""
			if i == 0 && len(key) == 1 {
				letter = key
			}
			flag := set.VarPF(&given{o.values, key, takes}, name, letter, "")
			if !takes {
				flag.NoOptDefVal = "true"
			}
		}
	}
	if err := set.Parse(plain(set, argv[1:])); err != nil {
		return o, complaintOf(err)
	}
	o.names = set.Args()
	return o, nil
}

// given is a [pflag.Value] that adds to the values of an option.
type given struct {
	values map[string][]string
	key    string
	takes  bool
}

func (g *given) Set(text string) error {
	if !g.takes {
		if text != "true" {
			return &problemWith{option: "--" + g.key + "=" + text}
		}
		text = ""
	}
	g.values[g.key] = append(g.values[g.key], text)
	return nil
}

func (*given) String() string { return "" }
func (*given) Type() string   { return "" }

// plain doubles the equals sign that begins the value of a letter, because pflag takes one away.
func plain(set *pflag.FlagSet, args []string) []string {
	all := make([]string, 0, len(args))
	for _, a := range args {
		for i := 1; i < len(a) && a[0] == '-' && a[1] != '-'; i++ {
			flag := set.ShorthandLookup(a[i : i+1])
			if flag == nil {
				break
			}
			if flag.NoOptDefVal == "" {
				if rest := a[i+1:]; len(rest) > 1 && rest[0] == '=' {
					a = a[:i+1] + "=" + rest
				}
				break
			}
		}
		all = append(all, a)
	}
	return all
}

func complaintOf(err error) error {
	if missing, is := errors.AsType[*pflag.ValueRequiredError](err); is {
		return &problemWith{option: dashed(missing.GetSpecifiedName(), missing.GetSpecifiedShortnames()), noValue: true}
	}
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
		return &problemWith{option: dashed(unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames())}
	}
	if errors.Is(err, pflag.ErrHelp) {
		return &problemWith{option: "-h"}
	}
	if own, is := errors.AsType[*problemWith](err); is {
		return own
	}
	return err
}

func dashed(name, letters string) string {
	if letters != "" {
		return "-" + name
	}
	return "--" + name
}
