package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

func (f *File) parse(header []byte) error {
	if !utf8.Valid(header) {
		return errors.New("header is not UTF-8")
	}
	return object(bytes.TrimRight(header, " "), "header", func(name string, raw json.RawMessage) error {
		if name == metadataKey {
			f.meta = map[string]string{}
			return object(raw, metadataKey, func(k string, v json.RawMessage) error {
				if v[0] != '"' {
					return fmt.Errorf("%s: %q is %s, want a string", metadataKey, k, v)
				}
				var s string
				err := json.Unmarshal(v, &s)
				f.meta[k] = s
				return err
			})
		}
		e, err := parseEntry(raw)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		f.at[name] = e
		return nil
	})
}

func parseEntry(raw json.RawMessage) (e entry, err error) {
	fields := map[string]json.RawMessage{"dtype": nil, "shape": nil, "data_offsets": nil}
	if err := object(raw, "entry", func(k string, v json.RawMessage) error { fields[k] = v; return nil }); err != nil {
		return e, err
	}
	for _, k := range []string{"dtype", "shape", "data_offsets"} {
		if fields[k] == nil {
			return e, fmt.Errorf("no %s", k)
		}
	}
	if err := json.Unmarshal(fields["dtype"], &e.DType); err != nil {
		return e, fmt.Errorf("dtype: %w", err)
	}
	if e.Shape, err = ints(fields["shape"]); err != nil {
		return e, fmt.Errorf("shape: %w", err)
	}
	off, err := ints(fields["data_offsets"])
	if err != nil {
		return e, fmt.Errorf("data_offsets: %w", err)
	}
	if len(off) != 2 || off[1] < off[0] {
		return e, fmt.Errorf("data_offsets %v, want begin and end", off)
	}
	if e.Bytes, err = bytesOf(e.DType, e.Shape); err != nil {
		return e, err
	}
	e.begin, e.end = int64(off[0]), int64(off[1])
	if e.end-e.begin != e.Bytes {
		return e, fmt.Errorf("%s of shape %v has %d bytes, but data_offsets %v span %d", e.DType, e.Shape, e.Bytes, off, e.end-e.begin)
	}
	return e, nil
}

// object calls fn for each member of a JSON object. Unlike Unmarshal it refuses a name
// that comes twice.
func object(raw []byte, what string, fn func(key string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%s is not a JSON object", what)
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		key := t.(string) // the decoder takes nothing else here
		if seen[key] {
			return fmt.Errorf("%s: %q comes twice", what, key)
		}
		seen[key] = true
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("%s: %q: %w", what, key, err)
		}
		if err := fn(key, v); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n := len(raw) - int(dec.InputOffset()); n > 0 {
		return fmt.Errorf("%s: %d bytes after its end", what, n)
	}
	return nil
}

// ints reads a list of numbers that are not negative.
func ints(raw json.RawMessage) ([]int, error) {
	var ps []*int // so that null, which Unmarshal would take for 0, is seen
	if err := json.Unmarshal(raw, &ps); err != nil {
		return nil, err
	}
	if ps == nil {
		return nil, errors.New("null, want a list")
	}
	v := make([]int, len(ps))
	for i, p := range ps {
		if p == nil || *p < 0 {
			return nil, fmt.Errorf("%s, want numbers from 0 on", raw)
		}
		v[i] = *p
	}
	return v, nil
}
