package images

import "strings"

// expand replaces $(NAME) by its value, as Kubernetes does in commands, arguments and values of variables: $$ becomes
// $, and unknown names stay unchanged.
func expand(text string, value func(name string) (string, bool)) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "("):
			name, after, closed := strings.Cut(rest[1:], ")")
			if !closed {
				b.WriteString("$(")
				text = rest[1:]
				continue
			}
			if v, known := value(name); known {
				b.WriteString(v)
			} else {
				b.WriteString("$(" + name + ")")
			}
			text = after
		default:
			b.WriteByte('$')
			text = rest
		}
	}
}
