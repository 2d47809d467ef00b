package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/sandbox/nearest"
)

// meant returns the beginning of a hint: the known name of which name is probably a misspelling; empty if there is none.
func meant(name string, known []string) string {
	if n := nearest.Name(name, known); n != "" {
		return fmt.Sprintf("did you mean %q? ", n)
	}
	return ""
}

// flagError returns the error for a flag that a command does not have, or whose value is none of its type.
func flagError(cmd *cobra.Command, err error) error {
	hint := "see '" + cmd.CommandPath() + " --help'"
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is && unknown.GetSpecifiedShortnames() == "" {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, "--"+f.Name)
			}
		})
		hint = meant("--"+unknown.GetSpecifiedName(), known) + hint
	}
	if invalid, is := errors.AsType[*pflag.InvalidValueError](err); is {
		if takes := typeOf(invalid.GetFlag(), errors.Unwrap(invalid)); takes != "" {
			return usageError(hint, "--%s takes %s, got %q", invalid.GetFlag().Name, takes, invalid.GetValue())
		}
	}
	return usageError(hint, "%w", err)
}

// typeOf says what the values of a flag are, where the cause of the error does not say it in words of ours.
func typeOf(f *pflag.Flag, cause error) string {
	if number, is := errors.AsType[*strconv.NumError](cause); is && errors.Is(number.Err, strconv.ErrRange) {
		return "a smaller number"
	}
	switch kind := f.Value.Type(); {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "count"):
		if strings.HasSuffix(kind, "Slice") {
			return "whole numbers, such as 1,3"
		}
		return "a whole number"
	case strings.HasPrefix(kind, "uint"):
		return "a whole number from 0"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "true or false"
	case kind == "duration":
		return "a time, such as 30s or 5m"
	}
	return ""
}
