package images

import "strings"

// flagArg is an argument as package flag reads it: -name, --name, --name=value, or --name value.
type flagArg struct {
	// name is without dashes. If it is empty, the argument is not a flag but the value.
	name, value string
	// hasValue is false for --name alone.
	hasValue bool
}

// text returns the argument for a process.
func (f flagArg) text() string {
	switch {
	case f.name == "":
		return f.value
	case f.hasValue:
		return "--" + f.name + "=" + f.value
	}
	return "--" + f.name
}

// readFlags reads arguments. A flag that is no switch, and that none is known of either, takes the next argument for its
// value. What comes after the first argument that is no flag, or after --, are no flags.
func readFlags(args []string, isSwitch func(name string) bool) []flagArg {
	var all []flagArg
	for i := 0; i < len(args); i++ {
		a := args[i]
		dashes := len(a) - len(strings.TrimLeft(a, "-"))
		if dashes == 0 || dashes > 2 || len(a) == dashes {
			for _, rest := range args[i:] {
				all = append(all, flagArg{value: rest})
			}
			return all
		}
		f := flagArg{}
		f.name, f.value, f.hasValue = strings.Cut(a[dashes:], "=")
		if !f.hasValue && !isSwitch(f.name) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			f.value, f.hasValue = args[i], true
		}
		all = append(all, f)
	}
	return all
}
