package metering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// deepest is how many ReportQueries may be inside of one another.
const deepest = 8

// invalidError says what only a person can mend.
type invalidError struct{ error }

func invalidf(format string, args ...any) error { return invalidError{fmt.Errorf(format, args...)} }

// missingError says what is not there yet.
type missingError struct{ error }

// rendering makes SQL of a ReportQuery. What a Report names is looked for in its namespace, then in the operator's.
type rendering struct {
	client     client.Reader
	namespaces []string
	since      time.Time
	until      time.Time

	// sources and reports are what the SQL reads.
	sources []*v1.ReportDataSource
	reports []*v1.Report
}

// find reads an object into into.
func (r *rendering) find(ctx context.Context, kind, name string, into client.Object) error {
	for _, namespace := range r.namespaces {
		err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
		if err == nil || !apierrors.IsNotFound(err) {
			return err
		}
	}
	return missingError{fmt.Errorf("%s %s is not there", kind, name)}
}

// render returns the SQL of a ReportQuery and its columns.
func (r *rendering) render(ctx context.Context, name string, given []v1.ReportInput, depth int) (sql string, columns []v1.ReportQueryColumn, err error) {
	if depth > deepest {
		return "", nil, invalidf("ReportQueries are more than %d inside of one another", deepest)
	}
	query := &v1.ReportQuery{}
	if err := r.find(ctx, "ReportQuery", name, query); err != nil {
		return "", nil, err
	}
	inputs, err := inputsOf(query, given)
	if err != nil {
		return "", nil, err
	}
	parsed, err := template.New(name).Delims("{|", "|}").Option("missingkey=error").Funcs(template.FuncMap{
		"sqlTime": func(t time.Time) int64 { return t.Unix() },
		"quote":   literal,
		"dataSourceTableName": func(name string) (string, error) {
			source := &v1.ReportDataSource{}
			if err := r.find(ctx, "ReportDataSource", name, source); err != nil {
				return "", err
			}
			r.sources = append(r.sources, source)
			return quoted(tableName(ownerOfSource(source))), nil
		},
		"reportTableName": func(name string) (string, error) {
			report := &v1.Report{}
			if err := r.find(ctx, "Report", name, report); err != nil {
				return "", err
			}
			r.reports = append(r.reports, report)
			return quoted(tableName(ownerOfReport(report))), nil
		},
		"renderReportQuery": func(name string) (string, error) {
			sql, _, err := r.render(ctx, name, nil, depth+1)
			return "(" + sql + ")", err
		},
	}).Parse(query.Spec.Query)
	if err != nil {
		return "", nil, invalidf("ReportQuery %s: %w", name, err)
	}
	var text strings.Builder
	err = parsed.Execute(&text, map[string]any{"Report": map[string]any{
		"ReportingStart": r.since, "ReportingEnd": r.until, "Inputs": inputs,
	}})
	var missing missingError
	switch {
	case errors.As(err, &missing):
		return "", nil, missing
	case err != nil:
		return "", nil, invalidf("ReportQuery %s: %w", name, err)
	}
	return text.String(), query.Spec.Columns, nil
}

// inputsOf returns the values of a query's inputs, as SQL takes them.
func inputsOf(query *v1.ReportQuery, given []v1.ReportInput) (map[string]string, error) {
	values := map[string]string{}
	for _, g := range given {
		if !slices.ContainsFunc(query.Spec.Inputs, func(i v1.ReportQueryInput) bool { return i.Name == g.Name }) {
			return nil, invalidf("ReportQuery %s has no input %s", query.Name, g.Name)
		}
	}
	for _, input := range query.Spec.Inputs {
		value := input.Default
		for _, g := range given {
			if g.Name == input.Name {
				value = &g.Value
			}
		}
		if value == nil {
			if input.Required {
				return nil, invalidf("ReportQuery %s needs the input %s", query.Name, input.Name)
			}
			values[input.Name] = ""
			continue
		}
		text, err := valueOf(input, value)
		if err != nil {
			return nil, err
		}
		values[input.Name] = text
	}
	return values, nil
}

// valueOf reads the value of an input. A number stays one, whatever else is written there.
func valueOf(input v1.ReportQueryInput, value *apiextensionsv1.JSON) (string, error) {
	var text string
	if json.Unmarshal(value.Raw, &text) != nil {
		text = string(value.Raw)
		if input.Type != v1.InputNumber {
			return "", invalidf("the input %s is %s, and no text", input.Name, text)
		}
	}
	if input.Type == v1.InputNumber {
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", invalidf("the input %s is %s, and no number", input.Name, value.Raw)
		}
		return strconv.FormatFloat(number, 'f', -1, 64), nil
	}
	return text, nil
}

// compute runs a query and returns its rows with the values in the order of the columns.
func (s *store) compute(ctx context.Context, sql string, columns []v1.ReportQueryColumn) ([][]any, error) {
	got, err := s.run(ctx, sql)
	if err != nil {
		return nil, err
	}
	place := make([]int, len(columns))
	for i, c := range columns {
		if place[i] = slices.Index(got.columns, c.Name); place[i] < 0 {
			return nil, invalidf("the query returns no column %s, but %s", c.Name, strings.Join(got.columns, ", "))
		}
	}
	rows := make([][]any, 0, len(got.rows))
	for _, row := range got.rows {
		ordered := make([]any, len(columns))
		for i, c := range columns {
			ordered[i] = row[place[i]]
			if at, is := ordered[i].(int64); is && c.Type == "timestamp" {
				ordered[i] = time.Unix(at, 0).UTC().Format(time.RFC3339)
			}
		}
		rows = append(rows, ordered)
	}
	return rows, nil
}
