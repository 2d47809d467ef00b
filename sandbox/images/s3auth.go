package images

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signed accepts only requests with the user's signature (AWS version 4, in a header or in the URL). It checks the
// signature of a request, not of the chunks of its body.
type signed struct {
	user, password string
	next           http.Handler
}

// signature is the signature that a request carries.
type signature struct {
	user, scope, date string
	headers           []string
	value             string
	// payload is the hash of the body, or a keyword in its place.
	payload string
	// expires is the time at which a signed URL expires; zero for a header.
	expires time.Time
}

const (
	signatureAlgorithm = "AWS4-HMAC-SHA256"
	signatureTime      = "20060102T150405Z"
	unsignedPayload    = "UNSIGNED-PAYLOAD"
	payloadHeader      = "X-Amz-Content-Sha256"
	// emptyPayload is the hash of an empty body.
	emptyPayload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// ServeHTTP implements [http.Handler].
func (s signed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	given, ok := readSignature(r)
	switch {
	case !ok:
		refuseS3(w, http.StatusForbidden, "AccessDenied", "Access Denied.")
	case given.user != s.user:
		refuseS3(w, http.StatusForbidden, "InvalidAccessKeyId", "The Access Key Id you provided does not exist in our records.")
	case !hmac.Equal([]byte(given.value), []byte(given.of(r, s.password))):
		refuseS3(w, http.StatusForbidden, "SignatureDoesNotMatch",
			"The request signature we calculated does not match the signature you provided. Check your key and signing method.")
	case !given.expires.IsZero() && time.Now().After(given.expires):
		refuseS3(w, http.StatusForbidden, "AccessDenied", "Request has expired")
	default:
		s.next.ServeHTTP(w, r)
	}
}

// refuseS3 answers with an error of S3.
func refuseS3(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	text, _ := xml.Marshal(struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: code, Message: message}) // of two strings
	fmt.Fprintf(w, "%s%s", xml.Header, text)
}

// readSignature reads the signature of a request; false if it has none.
func readSignature(r *http.Request) (s signature, ok bool) {
	query := r.URL.Query()
	fields := map[string]string{}
	if algorithm, rest, _ := strings.Cut(r.Header.Get("Authorization"), " "); algorithm == signatureAlgorithm {
		for field := range strings.SplitSeq(rest, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
			fields[name] = value
		}
		// curl before version 8 sends no hash of the body, and signs the hash of an empty one.
		s.date, s.payload = r.Header.Get("X-Amz-Date"), cmp.Or(r.Header.Get(payloadHeader), emptyPayload)
	} else if query.Get("X-Amz-Algorithm") == signatureAlgorithm {
		fields = map[string]string{
			"Credential": query.Get("X-Amz-Credential"), "SignedHeaders": query.Get("X-Amz-SignedHeaders"),
			"Signature": query.Get("X-Amz-Signature"),
		}
		s.date, s.payload = query.Get("X-Amz-Date"), unsignedPayload
		began, err := time.Parse(signatureTime, s.date)
		seconds, err2 := strconv.Atoi(query.Get("X-Amz-Expires"))
		if err != nil || err2 != nil {
			return s, false
		}
		s.expires = began.Add(time.Duration(seconds) * time.Second)
	}
	s.user, s.scope, ok = strings.Cut(fields["Credential"], "/")
	s.headers, s.value = strings.Split(fields["SignedHeaders"], ";"), fields["Signature"]
	// Without a signed host, the request could be sent elsewhere.
	return s, ok && s.value != "" && strings.Count(s.scope, "/") == 3 && slices.Contains(s.headers, "host")
}

// of returns the correct signature of the request.
func (s signature) of(r *http.Request, password string) string {
	var headers strings.Builder
	for _, name := range s.headers {
		values := slices.Clone(r.Header.Values(name))
		if name == "host" {
			values = []string{r.Host}
		}
		for i := range values {
			values[i] = strings.Join(strings.Fields(values[i]), " ")
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.Join(values, ","))
	}
	canonical := strings.Join([]string{
		r.Method, escapeS3(r.URL.Path, "/"), canonicalQuery(r.URL.Query()), headers.String(), strings.Join(s.headers, ";"), s.payload,
	}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + password)
	for part := range strings.SplitSeq(s.scope, "/") { // date, region, service, aws4_request
		key = hmacSHA256(key, part)
	}
	return hex.EncodeToString(hmacSHA256(key, strings.Join(
		[]string{signatureAlgorithm, s.date, s.scope, hex.EncodeToString(sum[:])}, "\n")))
}

func hmacSHA256(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonicalQuery returns all parameters in order, except for the signature itself.
func canonicalQuery(query url.Values) string {
	var pairs []string
	for name, values := range query {
		if name == "X-Amz-Signature" {
			continue
		}
		for _, value := range values {
			pairs = append(pairs, escapeS3(name, "")+"="+escapeS3(value, ""))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escapeS3 escapes all that AWS escapes, but for some.
func escapeS3(text, but string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~"+but, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}
