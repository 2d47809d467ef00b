package images

// CheckPattern returns an error if the text is not a valid pattern of images for an images file.
func CheckPattern(text string) error {
	_, err := parsePattern(text)
	return err
}

// Matches reports whether an image, by any name that a pod may use, matches a pattern, as in an images file.
func Matches(text, image string) bool {
	p, err := parsePattern(text)
	if err != nil {
		return false
	}
	n, err := parseName(image)
	return err == nil && p.matches(n)
}
