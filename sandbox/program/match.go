package program

// CheckPattern says what is wrong with a pattern of images; nil if it is one that an images file may have.
func CheckPattern(text string) error {
	_, err := parsePattern(text)
	return err
}

// Matches reports whether an image, by any name that a pod may give it, is one of a pattern's, as in an images file.
func Matches(text, image string) bool {
	p, err := parsePattern(text)
	if err != nil {
		return false
	}
	n, err := parseName(image)
	return err == nil && p.matches(n)
}
