package nn

import (
	"fmt"
	"reflect"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/join"
)

// check finds what Init refuses.
func check(m any) error {
	var errs []error
	type other struct {
		path, what string
		v          reflect.Value
	}
	var others []other
	names := map[string]bool{}
	params := map[*snug.Param]bool{}
	w := walker{seen: map[any]bool{}}
	w.param = func(name string, p *snug.Param) bool {
		if names[name] {
			errs = append(errs, fmt.Errorf("two parameters are named %q", name))
		}
		names[name] = true
		params[p] = true
		return true
	}
	w.other = func(path string, v reflect.Value, what string) { others = append(others, other{path, what, v}) }
	w.walk("", reflect.ValueOf(m))
	for _, o := range others {
		if (&search{params, map[any]bool{}}).in(o.v) {
			errs = append(errs, fmt.Errorf("%s holds parameters and is %s", o.path, o.what))
		}
	}
	if len(names) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%T has no parameters in exported fields", m))
	}
	return join.Errors(errs...)
}

// search looks, in values that reflection may only look at, for parameters that are not
// known and have not been placed on their own.
type search struct {
	known map[*snug.Param]bool
	seen  map[any]bool
}

func (s *search) in(v reflect.Value) bool {
	if v.Kind() == reflect.Invalid || !mayHold(v.Type(), map[reflect.Type]bool{}) {
		return false
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || s.seen[pointer(v)] {
			return false
		}
		s.seen[pointer(v)] = true
		if v.Type() == paramType {
			p := (*snug.Param)(v.UnsafePointer())
			return !s.known[p] && p.Device() == nil
		}
		return s.in(v.Elem())
	case reflect.Interface:
		return s.in(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if s.in(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			if s.in(i.Key()) || s.in(i.Value()) {
				return true
			}
		}
	case reflect.Struct:
		if v.Type() == paramType.Elem() {
			return true
		}
		for i := range v.NumField() {
			if s.in(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// mayHold reports whether a value of type t may lead to a parameter. Devices and scopes,
// which know of everybody's, do not count.
func mayHold(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == paramType.Elem() {
		return true
	}
	if seen[t] || t.PkgPath() == paramType.Elem().PkgPath() {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return mayHold(t.Elem(), seen)
	case reflect.Map:
		return mayHold(t.Key(), seen) || mayHold(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if mayHold(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// pointer identifies what v points to.
func pointer(v reflect.Value) any {
	return struct {
		at uintptr
		t  reflect.Type
	}{v.Pointer(), v.Type()}
}
