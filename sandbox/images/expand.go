package images

import "strings"

// Expand replaces $(NAME) by its value, as Kubernetes does in commands, arguments and values of variables: $$ becomes
// $, and unknown names stay unchanged.
func Expand(text string, value func(name string) (string, bool)) string {
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

// ReplacePaths replaces the paths of mounted volumes in an argument or the value of a variable; mounts maps them to paths on this
// machine.
func ReplacePaths(text string, mounts map[string]string) string {
	inPath := func(c byte) bool {
		return c == '/' || c == '.' || c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		best := ""
		if text[i] == '/' && (i == 0 || !inPath(text[i-1])) {
			for mount := range mounts {
				end := i + len(mount)
				if strings.HasPrefix(text[i:], mount) && len(mount) > len(best) && (end == len(text) || text[end] == '/' || !inPath(text[end])) {
					best = mount
				}
			}
		}
		if best == "" {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteString(mounts[best])
		i += len(best)
	}
	return b.String()
}
