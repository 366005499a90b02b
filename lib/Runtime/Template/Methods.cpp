//===- Methods.cpp - Methods of dicts and lists, global functions ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Text.h"

#include <algorithm>
#include <ctime>
#include <iterator>

namespace attune::runtime::jinja {

template <size_t count>
static bool isAmong(std::string_view name,
                    const std::string_view (&names)[count]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Python looks for an attribute before it looks for a member, so all names
/// count, whether they are of use here or not. The sandbox forbids those that
/// change a value.
bool Interpreter::hasMethod(const Value &value, std::string_view name,
                            bool &changesIt) {
  static const std::string_view ofText[] = {
      "capitalize",   "casefold",     "center",    "count",     "encode",
      "endswith",     "expandtabs",   "find",      "format",    "format_map",
      "index",        "isalnum",      "isalpha",   "isascii",   "isdecimal",
      "isdigit",      "isidentifier", "islower",   "isnumeric", "isprintable",
      "isspace",      "istitle",      "isupper",   "join",      "ljust",
      "lower",        "lstrip",       "maketrans", "partition", "removeprefix",
      "removesuffix", "replace",      "rfind",     "rindex",    "rjust",
      "rpartition",   "rsplit",       "rstrip",    "split",     "splitlines",
      "startswith",   "strip",        "swapcase",  "title",     "translate",
      "upper",        "zfill"};
  static const std::string_view ofDict[] = {"copy",  "fromkeys", "get",
                                            "items", "keys",     "values"};
  static const std::string_view changingDict[] = {"clear", "pop", "popitem",
                                                  "setdefault", "update"};
  static const std::string_view ofList[] = {"copy", "count", "index"};
  static const std::string_view changingList[] = {"append",  "clear", "extend",
                                                  "insert",  "pop",   "remove",
                                                  "reverse", "sort"};
  static const std::string_view ofTuple[] = {"count", "index"};
  static const std::string_view ofLoop[] = {"cycle", "changed"};
  static const std::string_view ofCycler[] = {"next", "reset"};
  switch (value.kind()) {
  case Kind::String:
    return isAmong(name, ofText);
  case Kind::Dict:
    changesIt = isAmong(name, changingDict);
    return changesIt || isAmong(name, ofDict);
  case Kind::List:
    changesIt = isAmong(name, changingList);
    return changesIt || isAmong(name, ofList);
  case Kind::Tuple:
  case Kind::Range:
    return isAmong(name, ofTuple);
  case Kind::Loop:
    return isAmong(name, ofLoop);
  case Kind::Cycler:
    return isAmong(name, ofCycler);
  case Kind::Float:
    return name == "is_integer";
  default:
    return false;
  }
}

bool Interpreter::callMethod(const Value &self, std::string_view name,
                             const Arguments &args, Value &out) {
  switch (self.kind()) {
  case Kind::String:
    return stringMethod(self, name, args, out);
  case Kind::Dict:
    return dictMethod(self, name, args, out);
  case Kind::List:
  case Kind::Tuple:
  case Kind::Range:
    return listMethod(self, name, args, out);
  case Kind::Loop:
  case Kind::Cycler:
    return callLoopMethod(self, name, args, out);
  case Kind::Float:
    out = Value::boolean(
        self.real() == static_cast<double>(static_cast<int64_t>(
                           std::max(-0x1p62, std::min(self.real(), 0x1p62)))));
    return true;
  default:
    return fail("a method that is not for chat templates");
  }
}

bool Interpreter::dictMethod(const Value &self, std::string_view name,
                             const Arguments &args, Value &out) {
  std::string what = "dict." + std::string(name);
  const DictObject &dict = self.dict();
  if (name == "get") {
    Value values[2];
    bool given[2];
    if (!bind(what, args, {"key", "default"}, 1, values, given) ||
        !hashable(values[0]))
      return false;
    const Value *found = dictFind(self, values[0]);
    out = found ? *found : values[1];
    return true;
  }
  if (name == "fromkeys")
    return fail("the method dict.fromkeys is not for chat templates");
  if (!bind(what, args, {}, 0, nullptr, nullptr))
    return false;
  if (name == "copy") {
    out = newDict();
    out.dict().keys = dict.keys;
    out.dict().values = dict.values;
    return charge(dict.keys.size() * 2 * sizeof(Value));
  }
  Value view = newList(Kind::View);
  view.list().view = name == "items"  ? "dict_items"
                     : name == "keys" ? "dict_keys"
                                      : "dict_values";
  for (size_t i = 0; i < dict.keys.size(); ++i) {
    Value item = name == "keys" ? dict.keys[i] : dict.values[i];
    if (name == "items") {
      item = newList(Kind::Tuple);
      if (!append(item, dict.keys[i]) || !append(item, dict.values[i]))
        return false;
    }
    if (!append(view, item) || !step())
      return false;
  }
  out = view;
  return true;
}

bool Interpreter::listMethod(const Value &self, std::string_view name,
                             const Arguments &args, Value &out) {
  std::string what = std::string(self.typeName()) + "." + std::string(name);
  std::vector<Value> items;
  if (!itemsOf(self, items))
    return false;
  if (name == "copy") {
    if (!bind(what, args, {}, 0, nullptr, nullptr))
      return false;
    out = newList();
    out.list().items = std::move(items);
    return true;
  }
  Value sought;
  bool given;
  if (!bind(what, args, {"value"}, 1, &sought, &given))
    return false;
  int64_t count = 0, first = -1;
  for (size_t i = 0; i < items.size(); ++i)
    if (equal(items[i], sought)) {
      ++count;
      first = first < 0 ? static_cast<int64_t>(i) : first;
    }
  if (name == "index" && first < 0)
    return fail("the value is not in the " + std::string(self.typeName()));
  out = Value::integer(name == "index" ? first : count);
  return step(items.size());
}

//===----------------------------------------------------------------------===//
// Loops, cyclers
//===----------------------------------------------------------------------===//

bool Interpreter::loopMember(const Value &value, std::string_view name,
                             Value &out) {
  if (value.is(Kind::Macro)) {
    const auto &macro = value.as<MacroObject>();
    if (name == "name") {
      out = newString(macro.node->text);
    } else if (name == "arguments") {
      out = newList(Kind::Tuple);
      for (const NamedNode &parameter : macro.node->named)
        if (!append(out, newString(parameter.name)))
          break;
    } else if (name == "caller") {
      out = Value::boolean(macro.node->integer & usesCaller);
    } else {
      return false;
    }
    return true;
  }
  if (value.is(Kind::Cycler) && name == "current") {
    auto &cycler = value.as<CyclerObject>();
    out = cycler.items[cycler.position % cycler.items.size()];
    return true;
  }
  if (!value.is(Kind::Loop))
    return false;
  const auto &loop = value.as<LoopObject>();
  auto size = static_cast<int64_t>(loop.items.size());
  auto at = static_cast<size_t>(loop.index);
  if (name == "index")
    out = Value::integer(loop.index + 1);
  else if (name == "index0")
    out = Value::integer(loop.index);
  else if (name == "revindex")
    out = Value::integer(size - loop.index);
  else if (name == "revindex0")
    out = Value::integer(size - loop.index - 1);
  else if (name == "first")
    out = Value::boolean(loop.index == 0);
  else if (name == "last")
    out = Value::boolean(loop.index + 1 == size);
  else if (name == "length")
    out = Value::integer(size);
  else if (name == "depth")
    out = Value::integer(loop.depth + 1);
  else if (name == "depth0")
    out = Value::integer(loop.depth);
  else if (name == "previtem")
    out = loop.index > 0 ? loop.items[at - 1]
                         : newUndefined("there is no previous item");
  else if (name == "nextitem")
    out = loop.index + 1 < size ? loop.items[at + 1]
                                : newUndefined("there is no next item");
  else
    return false;
  return true;
}

bool Interpreter::callLoopMethod(const Value &self, std::string_view name,
                                 const Arguments &args, Value &out) {
  if (!args.named.empty())
    return fail(std::string(name) + " takes no named arguments");
  if (self.is(Kind::Cycler)) {
    auto &cycler = self.as<CyclerObject>();
    out = name == "next" ? cycler.items[cycler.position++ % cycler.items.size()]
                         : Value();
    if (name == "reset")
      cycler.position = 0;
    return true;
  }
  auto &loop = self.as<LoopObject>();
  if (name == "cycle") {
    if (args.positional.empty())
      return fail("no items for cycling given");
    out = args.positional[static_cast<size_t>(loop.index) %
                          args.positional.size()];
    return true;
  }
  Value now = newList(Kind::Tuple);
  now.list().items = args.positional;
  out = Value::boolean(!loop.hasLast || !equal(loop.last, now));
  loop.hasLast = true;
  loop.last = now;
  return step();
}

//===----------------------------------------------------------------------===//
// Global functions
//===----------------------------------------------------------------------===//

static constexpr int64_t mostRange = 100000;

static bool callRange(Interpreter &in, const Arguments &args, Value &out,
                      RangeObject &range) {
  int64_t numbers[3] = {0, 0, 1};
  size_t count = args.positional.size();
  if (count < 1 || count > 3 || !args.named.empty())
    return in.fail("range takes 1 to 3 numbers");
  for (size_t i = 0; i < count; ++i)
    if (!in.wantInteger(args.positional[i], "range", numbers[i]))
      return false;
  if (count == 1)
    std::swap(numbers[0], numbers[1]);
  if (numbers[2] == 0)
    return in.fail("range() arg 3 must not be zero");
  range.start = numbers[0];
  range.stop = numbers[1];
  range.step = numbers[2];
  if (range.size() > mostRange || range.size() < 0)
    return in.fail("Range too big. The sandbox blocks ranges larger than "
                   "100000.");
  out = Value(Kind::Range, &range);
  return true;
}

/// strftime_now: the local time, as strftime lays it out in the C locale.
static bool formatNow(Interpreter &in, std::string_view format, Value &out) {
  if (format.size() > 1000)
    return in.fail("strftime_now: a format of more than 1000 characters");
  std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  std::string text(16384, '\0');
  size_t size =
      std::strftime(&text[0], text.size(), std::string(format).c_str(), &local);
  text.resize(size);
  out = in.newString(std::move(text));
  return in.step(0);
}

bool Interpreter::callGlobal(std::string_view name, const Arguments &args,
                             Value &out) {
  if (name == "range") {
    auto *range = heap.make<RangeObject>();
    return charge(sizeof(RangeObject) + 16) &&
           callRange(*this, args, out, *range);
  }
  if (name == "joiner") {
    Value separator = newString(", ");
    bool given;
    auto *joiner = heap.make<JoinerObject>();
    if (!bind(name, args, {"sep"}, 0, &separator, &given) ||
        !toText(separator, joiner->separator))
      return false;
    out = Value(Kind::Joiner, joiner);
    return charge(sizeof(JoinerObject) + 16);
  }
  if (name == "cycler") {
    if (args.positional.empty() || !args.named.empty())
      return fail("at least one item has to be provided");
    auto *cycler = heap.make<CyclerObject>();
    cycler->items = args.positional;
    out = Value(Kind::Cycler, cycler);
    return charge(sizeof(CyclerObject) + 16 +
                  args.positional.size() * sizeof(Value));
  }
  if (name == "raise_exception" || name == "strftime_now") {
    Value argument, text;
    bool given;
    bool raises = name == "raise_exception";
    if (!bind(name, args, {raises ? "message" : "format"}, 1, &argument,
              &given) ||
        !toText(argument, text))
      return false;
    if (raises)
      return fail(text.text().empty() ? "the template refuses this"
                                      : std::string(text.text()));
    return formatNow(*this, text.text(), out);
  }
  // dict and namespace
  Value dict = newDict();
  if (args.positional.size() > 1)
    return fail(std::string(name) + " takes at most one positional argument");
  for (const Value &source : args.positional) {
    if (source.isDict()) {
      for (size_t i = 0; i < source.dict().keys.size(); ++i)
        if (!dictSet(dict, source.dict().keys[i], source.dict().values[i]))
          return false;
      continue;
    }
    std::vector<Value> items;
    if (!itemsOf(source, items))
      return false;
    for (const Value &item : items) {
      std::vector<Value> pair;
      if (!itemsOf(item, pair))
        return false;
      if (pair.size() != 2)
        return fail("a dict is made of pairs");
      if (!dictSet(dict, pair[0], pair[1]))
        return false;
    }
  }
  for (const auto &[key, value] : args.named)
    if (!dictSet(dict, newString(std::string(key)), value))
      return false;
  out = name == "namespace" ? Value(Kind::Namespace, &dict.dict()) : dict;
  return true;
}

} // namespace attune::runtime::jinja
