// Package nn has layers as plain structs, and what walks them.
package nn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
)

type Layer interface {
	Forward(x *snug.Tensor) *snug.Tensor
}

// Func makes a function a Layer: nn.Func((*snug.Tensor).Tanh).
type Func func(x *snug.Tensor) *snug.Tensor

func (f Func) Forward(x *snug.Tensor) *snug.Tensor { return f(x) }

// Params are m's parameters and buffers in the order of its exported fields, shared
// ones once under their first name.
func Params(m any) iter.Seq2[string, *snug.Param] {
	return func(yield func(string, *snug.Param) bool) {
		w := walker{param: yield, layer: func(any, string) {}, seen: map[any]bool{}}
		w.walk("", reflect.ValueOf(m))
	}
}

// Init places m on d, all or nothing, and makes known the paths of its layers. A nil r
// leaves zeros, for what is loaded next.
func Init(ctx context.Context, d *snug.Device, m any, r *snug.Rand) error {
	n := 0
	layers := map[any]string{}
	w := walker{seen: map[any]bool{}, layer: func(l any, path string) { layers[l] = path }}
	w.param = func(string, *snug.Param) bool { n++; return true }
	if w.walk("", reflect.ValueOf(m)); w.err != nil {
		return w.err
	}
	if n == 0 {
		return fmt.Errorf("init: %T has no parameters in exported fields", m)
	}
	if err := snug.Place(ctx, d, r, memory.Parameters, Params(m)); err != nil {
		return err
	}
	for l, path := range layers {
		d.Label(l, path)
	}
	return nil
}

// Close frees what m has on its device. It may be called again.
func Close(m any) error {
	var errs []error
	d := (*snug.Device)(nil)
	w := walker{seen: map[any]bool{}, layer: func(any, string) {}}
	w.param = func(_ string, p *snug.Param) bool {
		if p.Device() != nil {
			d = p.Device()
		}
		errs = append(errs, p.Close())
		return true
	}
	w.walk("", reflect.ValueOf(m))
	if d != nil {
		w = walker{seen: map[any]bool{}, layer: func(l any, _ string) { d.Label(l, "") }, param: func(string, *snug.Param) bool { return true }}
		w.walk("", reflect.ValueOf(m))
	}
	return errors.Join(errs...)
}

// Freeze stops gradients, and a batch norm's statistics.
func Freeze(m any)   { freeze(m, true) }
func Unfreeze(m any) { freeze(m, false) }

func freeze(m any, on bool) {
	for _, p := range Params(m) {
		p.SetFrozen(on)
	}
}

type walker struct {
	param func(string, *snug.Param) bool
	layer func(layer any, path string)
	seen  map[any]bool
	err   error
}

var paramType = reflect.TypeFor[*snug.Param]()

func (w *walker) walk(path string, v reflect.Value) bool {
	join := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || w.seen[v.Interface()] {
			return true
		}
		w.seen[v.Interface()] = true
		if v.Type() == paramType {
			return w.param(path, v.Interface().(*snug.Param))
		}
		w.layer(v.Interface(), path)
		return w.walk(path, v.Elem())
	case reflect.Interface:
		return v.IsNil() || w.walk(path, v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !w.walk(join(strconv.Itoa(i)), v.Index(i)) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case f.Anonymous && f.IsExported():
				if !w.walk(path, v.Field(i)) {
					return false
				}
			case f.IsExported():
				if !w.walk(join(Name(f.Name)), v.Field(i)) {
					return false
				}
			case holds(f.Type, 0):
				w.err = fmt.Errorf("init: %s.%s holds parameters and is not exported", v.Type(), f.Name)
			}
		}
	}
	return true
}

// holds reports whether a field of type t may hold parameters.
func holds(t reflect.Type, depth int) bool {
	switch {
	case t == paramType:
		return true
	case depth > 8:
		return false
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return holds(t.Elem(), depth+1)
	case t.Kind() == reflect.Struct && t != paramType.Elem():
		for i := range t.NumField() {
			if holds(t.Field(i).Type, depth+1) {
				return true
			}
		}
	}
	return false
}

// Name is a field's name as torchvision writes it: RunningMean → running_mean, BN1 →
// bn1, FC → fc.
func Name(field string) string {
	var b strings.Builder
	last := ' '
	for _, r := range field {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return b.String()
}
