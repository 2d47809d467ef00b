package cli

import (
	"net/url"
	"path/filepath"
)

// The part of SARIF 2.1.0 that problems need. Lines and columns begin with 1; a problem of a whole file has no region.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

// sarif returns the problems that a tool found as SARIF. They are of one rule: they have no identifiers of their own. Names
// of files are relative where they were given so.
func (r *lintResult) sarif(tool string, rule sarifRule) sarifLog {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}} // not null in JSON
	run.Tool.Driver = sarifDriver{tool, version(), []sarifRule{rule}}
	for _, p := range r.Problems {
		result := sarifResult{RuleID: rule.ID, Level: p.Severity, Message: sarifText{p.text()}}
		if p.File != "" {
			var at sarifPhysical
			name := url.URL{Path: filepath.ToSlash(p.File)}
			if filepath.IsAbs(p.File) {
				name.Scheme = "file"
			}
			at.Artifact.URI = name.String()
			if p.Line > 0 {
				at.Region = &sarifRegion{p.Line, p.Column}
			}
			result.Locations = []sarifLocation{{at}}
		}
		run.Results = append(run.Results, result)
	}
	return sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}
