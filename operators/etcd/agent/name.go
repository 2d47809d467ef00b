package agent

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// timeLayout of names. Two backups of one revision within a second are the same.
const timeLayout = "2006-01-02-15:04:05"

// version tells the periodic backups of one path apart.
type version struct {
	revision int64
	taken    time.Time // UTC, in whole seconds
}

// nameOf returns the name of a periodic backup: <path>_v<revision>_<time>.
func nameOf(path string, v version) string {
	return path + "_v" + strconv.FormatInt(v.revision, 10) + "_" + v.taken.UTC().Format(timeLayout)
}

// parseName returns the version of a name, and whether it is that of a periodic backup of the path. It has to be
// exactly as nameOf writes it: what else lies about has another owner.
func parseName(path, name string) (version, bool) {
	rest, ok := strings.CutPrefix(name, path+"_v")
	if !ok {
		return version{}, false
	}
	digits, date, ok := strings.Cut(rest, "_")
	if !ok {
		return version{}, false
	}
	revision, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || revision <= 0 {
		return version{}, false
	}
	taken, err := time.Parse(timeLayout, date)
	if err != nil {
		return version{}, false
	}
	v := version{revision, taken}
	return v, nameOf(path, v) == name
}

// compare is by revision, as a number, and then by time: a later revision has all that an earlier one had, whatever the
// clocks of the machines said. A restored cluster has a higher revision than it ever had, see seed.
func (v version) compare(w version) int {
	return cmp.Or(cmp.Compare(v.revision, w.revision), v.taken.Compare(w.taken))
}
