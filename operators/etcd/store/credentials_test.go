package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/operators/etcd/store"
)

func TestCredentials(t *testing.T) {
	both := store.Credentials{AccessKeyID: "id", SecretAccessKey: "se=cr et", Region: "eu"}
	for name, tc := range map[string]struct {
		credentials, config string
		want                store.Credentials
		wrong               bool
	}{
		"both files":         {"[default]\naws_access_key_id = id\naws_secret_access_key=se=cr et\n", "[default]\nregion=eu", both, false},
		"all in one":         {"[default]\nregion = eu\naws_access_key_id = id\naws_secret_access_key = se=cr et\r\n", "", both, false},
		"no section":         {"aws_access_key_id = id\naws_secret_access_key = se=cr et", "region = eu", both, false},
		"other sections":     {"[other]\naws_access_key_id = x\n[ default ]\n# c\n; c\nAWS_ACCESS_KEY_ID = id\naws_secret_access_key = se=cr et\n[more]\nregion=us", "[default]\nregion=eu", both, false},
		"credentials first":  {"aws_access_key_id=id\naws_secret_access_key=se=cr et\nregion=eu", "aws_access_key_id=x\naws_secret_access_key=y\nregion=us", both, false},
		"nobody":             {"", "", store.Credentials{}, false},
		"half":               {"aws_access_key_id = id", "", store.Credentials{}, true},
		"no key and value":   {"this is secret", "", store.Credentials{}, true},
		"a section open":     {"[default\nsecret", "", store.Credentials{}, true},
		"no text, and long":  {strings.Repeat("secret", 100_000), "", store.Credentials{}, true},
		"a token for a time": {"aws_access_key_id=id\naws_secret_access_key=se=cr et\naws_session_token=t", "region=eu", store.Credentials{AccessKeyID: "id", SecretAccessKey: "se=cr et", Region: "eu", SessionToken: "t"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := store.ParseCredentials([]byte(tc.credentials), []byte(tc.config))
			if (err != nil) != tc.wrong || got != tc.want {
				t.Errorf("got %+v, %v, want %+v, wrong %t", got, err, tc.want, tc.wrong)
			}
			if err != nil && strings.Contains(err.Error(), "secret ") {
				t.Errorf("the error gives away what is in the file: %v", err)
			}
		})
	}
}

func TestReadCredentials(t *testing.T) {
	if who, err := store.ReadCredentials(""); err != nil || who != (store.Credentials{}) {
		t.Errorf("got %+v, %v", who, err)
	}
	dir := t.TempDir()
	if who, err := store.ReadCredentials(dir); err != nil || who != (store.Credentials{}) {
		t.Errorf("got %+v, %v", who, err)
	}
	if err := os.WriteFile(filepath.Join(dir, store.ConfigFile), []byte("region = eu"), 0o600); err != nil {
		t.Fatal(err)
	}
	if who, err := store.ReadCredentials(dir); err != nil || who.Region != "eu" {
		t.Errorf("got %+v, %v", who, err)
	}
}

func FuzzParseCredentials(f *testing.F) {
	f.Add([]byte("[default]\naws_access_key_id = id\naws_secret_access_key = secret"), []byte("region=eu"))
	f.Add([]byte("[default"), []byte("=\n[]\n#"))
	f.Fuzz(func(t *testing.T, credentials, config []byte) {
		who, err := store.ParseCredentials(credentials, config)
		if err != nil && who != (store.Credentials{}) {
			t.Errorf("an error, and %+v", who)
		}
		if (who.AccessKeyID == "") != (who.SecretAccessKey == "") {
			t.Errorf("half of it: %+v", who)
		}
		for _, value := range []string{who.AccessKeyID, who.SecretAccessKey, who.SessionToken, who.Region} {
			if value != strings.TrimSpace(value) || strings.ContainsAny(value, "\n") {
				t.Errorf("%q is no value", value)
			}
		}
	})
}
