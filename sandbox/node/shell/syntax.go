package shell

// The parts of a script.
type (
	// command is anything that runs.
	command interface{ run(*process, streams) int }

	// sequence is one command after the other.
	sequence []command
	// either runs the second if the first did not succeed; both if it did.
	either struct{ first, second command }
	both   struct{ first, second command }
	// pipeline has one command or more, each reading what the one before writes.
	pipeline struct {
		commands []command
		not      bool
	}
	// simple is a command with arguments, or assignments only.
	simple struct {
		assignments  []assignment
		words        []word
		redirections []redirection
	}
	// group is ( … ) or { … }.
	group struct {
		body         command
		subshell     bool
		redirections []redirection
	}
	// conditional is if; otherwise is nil, or what else leads to.
	conditional struct {
		test, then, otherwise command
	}
	// loop is while or until.
	loop struct {
		test, body command
		until      bool
	}
	// iteration is for.
	iteration struct {
		name  string
		words []word
		// arguments: there was no 'in'.
		arguments bool
		body      command
	}
)

type assignment struct {
	name  string
	value word
}

// redirection is of a stream: 0, 1 or 2; 3 stands for both 1 and 2.
type redirection struct {
	stream int
	// kind is one of < > >> >&.
	kind   string
	target word
}

// word is made of parts without space between them.
type word []part

// part is text as it is, or what it stands for.
type part struct {
	// text as it is.
	text string
	// quoted: it is neither split nor a pattern.
	quoted bool
	// variable is the name in $name; operator and argument those of ${name:-argument}.
	variable, operator string
	argument           word
	// output of a command stands for itself.
	output command
}
