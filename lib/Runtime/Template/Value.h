//===- Value.h - What templates compute with --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values behave as Python's do. Objects belong to a heap that lives as long as
// one rendering, which needs neither reference counts nor a collector and has
// no trouble with cycles; its size is bounded.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEMPLATE_VALUE_H
#define ATTUNE_LIB_RUNTIME_TEMPLATE_VALUE_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime::jinja {

struct Node;
struct Scope;

enum class Kind : uint8_t {
  Undefined,
  None,
  Bool,
  Int,
  Float,
  String,
  List,
  Tuple,
  Generator, ///< what select and its kin give: items to go through once
  View,      ///< the keys, values or items of a dict
  Range,
  Dict,
  Namespace,
  Macro,
  Method, ///< of a value, or a global function
  Loop,
  Cycler,
  Joiner
};

struct Object {
  virtual ~Object() = default;
};

struct StringObject;
struct ListObject;
struct DictObject;
struct UndefinedObject;
struct RangeObject;
struct MacroObject;
struct MethodObject;
struct LoopObject;
struct CyclerObject;

class Value {
public:
  Value() : kind_(Kind::None), integer_(0) {}
  static Value boolean(bool value) {
    Value v;
    v.kind_ = Kind::Bool;
    v.integer_ = value;
    return v;
  }
  static Value integer(int64_t value) {
    Value v;
    v.kind_ = Kind::Int;
    v.integer_ = value;
    return v;
  }
  static Value real(double value) {
    Value v;
    v.kind_ = Kind::Float;
    v.real_ = value;
    return v;
  }
  Value(Kind kind, Object *object) : kind_(kind), object_(object) {}

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool isUndefined() const { return kind_ == Kind::Undefined; }
  bool isNone() const { return kind_ == Kind::None; }
  bool isString() const { return kind_ == Kind::String; }
  bool isDict() const { return kind_ == Kind::Dict; }
  /// Python's bool is a number, too.
  bool isInteger() const { return kind_ == Kind::Int || kind_ == Kind::Bool; }
  bool isNumber() const { return isInteger() || kind_ == Kind::Float; }
  /// Whether the object is a ListObject.
  bool hasItems() const { return kind_ >= Kind::List && kind_ <= Kind::View; }

  bool boolean() const { return integer_ != 0; }
  int64_t integer() const { return integer_; }
  double real() const {
    return kind_ == Kind::Float ? real_ : static_cast<double>(integer_);
  }
  const Object *object() const { return object_; }
  inline std::string_view text() const;
  inline bool isMarkup() const;
  ListObject &list() const { return *reinterpret_cast<ListObject *>(object_); }
  DictObject &dict() const { return *reinterpret_cast<DictObject *>(object_); }
  template <typename T> T &as() const { return *static_cast<T *>(object_); }

  /// As Python names the type, for messages.
  const char *typeName() const;

private:
  Kind kind_;
  union {
    int64_t integer_;
    double real_;
    Object *object_;
  };
};

struct StringObject : Object {
  std::string text;
  bool isMarkup = false; ///< made by `safe` or `escape`
};
struct ListObject : Object {
  std::vector<Value> items;
  bool spent = false;    ///< a generator that was gone through
  const char *view = ""; ///< of a View: dict_keys ...
};
/// Also a Namespace. Keys keep the order in which they came.
struct DictObject : Object {
  std::vector<Value> keys, values;
};
struct UndefinedObject : Object {
  std::string name;  ///< empty: `hint` is the whole message
  std::string owner; ///< the type that has no such attribute; empty: none
  std::string hint;
  std::string message() const;
};
struct RangeObject : Object {
  int64_t start = 0, stop = 0, step = 1;
  int64_t size() const;
};
struct MacroObject : Object {
  const Node *node = nullptr;
  Scope *scope = nullptr; ///< where it was defined
};
struct MethodObject : Object {
  Value self; ///< None: a global function
  std::string_view name;
};
struct LoopObject : Object {
  std::vector<Value> items;
  const Node *node = nullptr; ///< of a recursive loop, else null
  Scope *scope = nullptr;
  int64_t index = 0, depth = 0;
  bool hasLast = false;
  Value last; ///< what `changed` was called with
};
struct CyclerObject : Object {
  std::vector<Value> items;
  size_t position = 0;
};
struct JoinerObject : Object {
  Value separator;
  bool used = false;
};

std::string_view Value::text() const { return as<StringObject>().text; }
bool Value::isMarkup() const {
  return isString() && as<StringObject>().isMarkup;
}

/// Names that are visible at a point of the template.
struct Scope : Object {
  Scope *parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;

  Value *find(std::string_view name) {
    for (auto &entry : names)
      if (entry.first == name)
        return &entry.second;
    return nullptr;
  }
  void set(std::string_view name, Value value) {
    if (Value *known = find(name))
      *known = value;
    else
      names.emplace_back(name, value);
  }
};

class Heap {
public:
  template <typename T> T *make() {
    T *object = new T();
    objects.emplace_back(object);
    return object;
  }

private:
  std::vector<std::unique_ptr<Object>> objects;
};

/// Whether a value counts as true.
bool truth(const Value &value);

/// The number of code points of a text.
int64_t countCharacters(std::string_view text);
/// Where character `index` begins, at most the end.
size_t characterOffset(std::string_view text, int64_t index);

} // namespace attune::runtime::jinja

#endif // ATTUNE_LIB_RUNTIME_TEMPLATE_VALUE_H
