package zundoko

import (
	"fmt"
	"strconv"
	"strings"
)

// wordInfix stands between the name of a Hikawa and the number of a word.
const wordInfix = "-zundoko-"

// wordName names the n-th word of a song, counted from 1. Three digits keep the words of nearly every
// song in order in a listing: one random song in ten million is longer than 999 words.
func wordName(hikawa string, n int) string {
	return fmt.Sprintf("%s%s%03d", hikawa, wordInfix, n)
}

// wordNumber is the inverse of wordName: the number of the word of that name, and false if wordName
// gives no word of that song this name.
func wordNumber(hikawa, name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, hikawa)
	if !ok {
		return 0, false
	}
	digits, ok := strings.CutPrefix(rest, wordInfix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || wordName(hikawa, n) != name {
		return 0, false
	}
	return n, true
}

// kiyoshiName names the one Kiyoshi of a song.
func kiyoshiName(hikawa string) string {
	return hikawa + "-kiyoshi"
}
