package runner

import (
	"math/rand/v2"
	"strings"
	"sync"
)

// names generates unique names for namespaces.
type names struct {
	mu    sync.Mutex
	taken map[string]bool
}

// adjectives and animals are the parts of names.
var (
	adjectives = strings.Fields(`able apt bold brave brief bright brisk calm clean clear clever cool crisp deep eager easy
		even fair fast fine firm fond fresh full gentle glad good grand great happy honest humble just keen kind large light
		live loud loyal lucky mellow merry mild modest neat nice noble open plain polite proud pure quick quiet rapid ready
		rich right safe sharp shy simple sleek smart smooth sound steady still sunny sure swift tidy true warm wise witty`)
	animals = strings.Fields(`ant ape badger bass bat bear bee bison boar bug calf carp cat clam cobra cod colt coral cow
		crab crane crow deer dog dove duck eagle eel elk emu fawn finch fish fly fowl fox frog goat goose grouse gull hare
		hawk hen heron horse jay kite koala lamb lark lion llama lynx mole moose moth mouse mule newt owl ox panda pig
		pony pug quail ram rat raven robin seal shark sheep shrew slug snail snake sole squid stork swan tiger toad trout
		viper wasp whale wolf worm wren yak zebra`)
)

// next returns the next name of a generator that no test of the run has.
func (n *names) next(random *rand.Rand) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := "chainsaw-" + adjectives[random.IntN(len(adjectives))] + "-" + animals[random.IntN(len(animals))]
	for n.taken[name] {
		name += "-" + animals[random.IntN(len(animals))]
	}
	n.taken[name] = true
	return name
}
