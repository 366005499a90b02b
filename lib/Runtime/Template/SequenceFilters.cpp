//===- SequenceFilters.cpp - Filters of lists and dicts -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Filters.h"
#include "Parser.h"
#include "Text.h"

#include <algorithm>

namespace attune::runtime::jinja {

namespace {
/// A path such as "function.name", or nothing: the item itself.
class AttributeGetter {
public:
  AttributeGetter(const FilterCall &call, const Value &attribute,
                  bool ignoreCase, const Value *fallback = nullptr)
      : call(call), ignoreCase(ignoreCase), fallback(fallback) {
    if (attribute.isInteger())
      parts.push_back(attribute);
    if (!attribute.isString())
      return;
    std::string_view rest = attribute.text();
    for (;;) {
      size_t dot = std::min(rest.find('.'), rest.size());
      std::string part(rest.substr(0, dot));
      bool isIndex = !part.empty() && part.size() < 10 &&
                     part.find_first_not_of("0123456789") == std::string::npos;
      parts.push_back(isIndex ? Value::integer(std::atoll(part.c_str()))
                              : call.in.newString(part));
      if (dot == rest.size())
        return;
      rest.remove_prefix(dot + 1);
    }
  }

  bool get(const Value &item, Value &out) const {
    out = item;
    for (const Value &part : parts) {
      Value object = out;
      if (!call.in.getItem(object, part, out))
        return false;
      if (fallback && out.isUndefined())
        out = *fallback;
    }
    if (ignoreCase && out.isString())
      out = call.in.newString(toLower(out.text()));
    return call.in.step();
  }

private:
  const FilterCall &call;
  std::vector<Value> parts;
  bool ignoreCase;
  const Value *fallback;
};

/// An item with what it is sorted by.
struct Keyed {
  Value item;
  std::vector<Value> keys;
};
} // namespace

static bool inputItems(const FilterCall &call, std::vector<Value> &items) {
  return call.in.itemsOf(call.input, items);
}

static bool giveList(const FilterCall &call, std::vector<Value> items,
                     Kind kind = Kind::List) {
  call.out = call.in.newList(kind);
  call.out.list().items = std::move(items);
  return call.in.charge(call.out.list().items.size() * sizeof(Value));
}

/// Merges runs of growing length: stable, and safe whatever the order says.
static bool sortKeyed(Interpreter &in, std::vector<Keyed> &items,
                      bool reverse) {
  std::vector<Keyed> other(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      size_t middle = std::min(begin + width, items.size());
      size_t end = std::min(begin + 2 * width, items.size());
      size_t a = begin, b = middle, to = begin;
      while (a < middle || b < end) {
        bool takeSecond = a == middle;
        if (!takeSecond && b < end) {
          int sign = 0;
          for (size_t i = 0; i < items[a].keys.size() && sign == 0; ++i)
            if (!in.equal(items[b].keys[i], items[a].keys[i]) &&
                !in.order(items[b].keys[i], items[a].keys[i], "<", sign))
              return false;
          takeSecond = reverse ? sign > 0 : sign < 0;
          if (!in.step())
            return false;
        }
        other[to++] = std::move(items[takeSecond ? b++ : a++]);
      }
    }
    std::swap(items, other);
  }
  return true;
}

static bool applySort(const FilterCall &call) {
  Value values[3];
  bool given[3];
  std::vector<Value> items;
  if (!call.in.bind(call.what(), call.args,
                    {"reverse", "case_sensitive", "attribute"}, 0, values,
                    given) ||
      !inputItems(call, items))
    return false;
  bool ignoreCase = !(given[1] && truth(values[1]));
  // "a,b" sorts by a, then by b.
  std::vector<AttributeGetter> getters;
  std::string_view rest =
      values[2].isString() ? values[2].text() : std::string_view();
  if (!values[2].isString())
    getters.emplace_back(call, values[2], ignoreCase);
  while (values[2].isString()) {
    size_t comma = std::min(rest.find(','), rest.size());
    getters.emplace_back(call,
                         call.in.newString(std::string(rest.substr(0, comma))),
                         ignoreCase);
    if (comma == rest.size())
      break;
    rest.remove_prefix(comma + 1);
  }
  std::vector<Keyed> keyed(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    keyed[i].item = items[i];
    for (const AttributeGetter &getter : getters) {
      keyed[i].keys.emplace_back();
      if (!getter.get(items[i], keyed[i].keys.back()))
        return false;
    }
  }
  if (!sortKeyed(call.in, keyed, given[0] && truth(values[0])))
    return false;
  for (size_t i = 0; i < items.size(); ++i)
    items[i] = keyed[i].item;
  return giveList(call, std::move(items));
}

static bool applyDictSort(const FilterCall &call) {
  Value values[3];
  bool given[3];
  if (!call.in.bind(call.what(), call.args, {"case_sensitive", "by", "reverse"},
                    0, values, given))
    return false;
  if (!call.input.isDict())
    return call.in.wantDefined(call.input) &&
           call.in.fail(std::string("'") + call.input.typeName() +
                        " object' has no attribute 'items'");
  bool byValue =
      given[1] && values[1].isString() && values[1].text() == "value";
  if (given[1] && !byValue &&
      !(values[1].isString() && values[1].text() == "key"))
    return call.in.fail("You can only sort by either \"key\" or \"value\"");
  AttributeGetter getter(call, Value(), !(given[0] && truth(values[0])));
  std::vector<Keyed> keyed;
  const DictObject &dict = call.input.dict();
  for (size_t i = 0; i < dict.keys.size(); ++i) {
    Keyed entry;
    entry.item = call.in.newList(Kind::Tuple);
    entry.keys.emplace_back();
    if (!call.in.append(entry.item, dict.keys[i]) ||
        !call.in.append(entry.item, dict.values[i]) ||
        !getter.get(byValue ? dict.values[i] : dict.keys[i], entry.keys[0]))
      return false;
    keyed.push_back(std::move(entry));
  }
  if (!sortKeyed(call.in, keyed, given[2] && truth(values[2])))
    return false;
  std::vector<Value> items;
  for (const Keyed &entry : keyed)
    items.push_back(entry.item);
  return giveList(call, std::move(items));
}

static bool applyGroupBy(const FilterCall &call) {
  Value values[3];
  bool given[3];
  std::vector<Value> items;
  if (!call.in.bind(call.what(), call.args,
                    {"attribute", "default", "case_sensitive"}, 1, values,
                    given) ||
      !inputItems(call, items))
    return false;
  const Value *fallback =
      given[1] && !values[1].isNone() ? &values[1] : nullptr;
  bool ignoreCase = !(given[2] && truth(values[2]));
  AttributeGetter key(call, values[0], ignoreCase, fallback),
      label(call, values[0], false, fallback);
  std::vector<Keyed> keyed(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    keyed[i].item = items[i];
    keyed[i].keys.emplace_back();
    if (!key.get(items[i], keyed[i].keys[0]))
      return false;
  }
  if (!sortKeyed(call.in, keyed, false))
    return false;
  std::vector<Value> groups;
  for (size_t i = 0; i < keyed.size();) {
    Value group = call.in.newList(), pair = call.in.newList(Kind::Tuple), name;
    size_t first = i;
    for (; i < keyed.size() &&
           call.in.equal(keyed[i].keys[0], keyed[first].keys[0]);
         ++i)
      if (!call.in.append(group, keyed[i].item))
        return false;
    if (!label.get(keyed[first].item, name) || !call.in.append(pair, name) ||
        !call.in.append(pair, group))
      return false;
    groups.push_back(pair);
  }
  return giveList(call, std::move(groups));
}

static bool applyUnique(const FilterCall &call) {
  Value values[2];
  bool given[2];
  std::vector<Value> items, keys, kept;
  if (!call.in.bind(call.what(), call.args, {"case_sensitive", "attribute"}, 0,
                    values, given) ||
      !inputItems(call, items))
    return false;
  AttributeGetter getter(call, values[1], !(given[0] && truth(values[0])));
  for (const Value &item : items) {
    Value key;
    if (!getter.get(item, key) || !call.in.hashable(key) ||
        !call.in.step(keys.size() / 8))
      return false;
    bool known = false;
    for (const Value &other : keys)
      known = known || call.in.equal(other, key);
    if (known)
      continue;
    keys.push_back(key);
    kept.push_back(item);
  }
  return giveList(call, std::move(kept), Kind::Generator);
}

static bool applyMinMax(const FilterCall &call) {
  Value values[2];
  bool given[2];
  std::vector<Value> items;
  if (!call.in.bind(call.what(), call.args, {"case_sensitive", "attribute"}, 0,
                    values, given) ||
      !inputItems(call, items))
    return false;
  if (items.empty()) {
    call.out = call.in.newUndefined("No aggregated item, sequence was empty.");
    return call.in.step(0);
  }
  AttributeGetter getter(call, values[1], !(given[0] && truth(values[0])));
  Value best;
  for (size_t i = 0; i < items.size(); ++i) {
    Value key;
    int sign = 0;
    if (!getter.get(items[i], key) ||
        (i && !call.in.order(key, best, "<", sign)))
      return false;
    if (i && (call.name == "min" ? sign >= 0 : sign <= 0))
      continue;
    best = key;
    call.out = items[i];
  }
  return true;
}

static bool applySum(const FilterCall &call) {
  Value values[2] = {Value(), Value::integer(0)};
  bool given[2];
  std::vector<Value> items;
  if (!call.in.bind(call.what(), call.args, {"attribute", "start"}, 0, values,
                    given) ||
      !inputItems(call, items))
    return false;
  AttributeGetter getter(call, values[0], false);
  Value total = values[1];
  if (total.isString())
    return call.in.fail("sum() can't sum strings");
  for (const Value &item : items) {
    Value value;
    if (!getter.get(item, value) ||
        !call.in.arithmetic(NodeKind::Add, total, value, total))
      return false;
  }
  call.out = total;
  return true;
}

static bool applyJoin(const FilterCall &call) {
  Value values[2];
  bool given[2];
  std::vector<Value> items;
  if (!call.in.bind(call.what(), call.args, {"d", "attribute"}, 0, values,
                    given) ||
      !inputItems(call, items))
    return false;
  Value separator = call.in.newString("");
  if (given[0] && !call.in.toText(values[0], separator))
    return false;
  AttributeGetter getter(call, values[1], false);
  Interpreter::Builder out(call.in);
  for (size_t i = 0; i < items.size(); ++i) {
    Value item;
    out.add(i ? separator.text() : std::string_view());
    if (!getter.get(items[i], item) || !call.in.appendText(out, item))
      return false;
  }
  call.out = out.take();
  return call.in.step(0);
}

static bool applyLength(const FilterCall &call) {
  int64_t length;
  if (!noArguments(call) || !call.in.lengthOf(call.input, length))
    return false;
  call.out = Value::integer(length);
  return true;
}

static bool applyFirstLast(const FilterCall &call) {
  if (!noArguments(call))
    return false;
  bool first = call.name == "first";
  if (call.input.is(Kind::Generator)) {
    // Items that are taken are gone from a generator.
    if (!first)
      return call.in.fail("'generator' object is not reversible");
    std::vector<Value> &items = call.input.list().items;
    if (!items.empty()) {
      call.out = items.front();
      items.erase(items.begin());
      return call.in.step(items.size() / 8);
    }
  }
  std::vector<Value> items;
  if (!inputItems(call, items))
    return false;
  call.out =
      !items.empty()
          ? (first ? items.front() : items.back())
          : call.in.newUndefined(first ? "No first item, sequence was empty."
                                       : "No last item, sequence was empty.");
  return call.in.step(0);
}

static bool applyList(const FilterCall &call) {
  std::vector<Value> items;
  return noArguments(call) && inputItems(call, items) &&
         giveList(call, std::move(items));
}

static bool applyReverse(const FilterCall &call) {
  std::vector<Value> items;
  if (!noArguments(call) || !inputItems(call, items))
    return false;
  std::reverse(items.begin(), items.end());
  if (!call.input.isString())
    return giveList(call, std::move(items), Kind::Generator);
  Interpreter::Builder out(call.in);
  for (const Value &item : items)
    out.add(item.text());
  call.out = out.take();
  return call.in.step(0);
}

static bool applyItems(const FilterCall &call) {
  if (!noArguments(call))
    return false;
  if (call.input.isUndefined())
    return giveList(call, {}, Kind::Generator);
  if (!call.input.isDict())
    return call.in.fail("Can only get item pairs from a mapping.");
  Value view;
  return call.in.callMethod(call.input, "items", Arguments(), view) &&
         giveList(call, view.list().items, Kind::Generator);
}

static bool applyDefault(const FilterCall &call) {
  Value values[2] = {call.in.newString(""), Value::boolean(false)};
  bool given[2];
  if (!call.in.bind(call.what(), call.args, {"default_value", "boolean"}, 0,
                    values, given))
    return false;
  bool replace =
      call.input.isUndefined() || (truth(values[1]) && !truth(call.input));
  call.out = replace ? values[0] : call.input;
  return true;
}

static bool applyAttr(const FilterCall &call) {
  Value name;
  bool given;
  std::string_view text;
  if (!call.in.bind(call.what(), call.args, {"name"}, 1, &name, &given) ||
      !call.in.wantText(name, call.what(), text))
    return false;
  if (call.input.isDict()) {
    // A dict's members are no attributes.
    bool changesIt = false;
    if (!Interpreter::hasMethod(call.input, text, changesIt)) {
      call.out = call.in.newUndefined(text, "dict");
      return call.in.step(0);
    }
  }
  return call.in.getAttribute(call.input, text, call.out);
}

/// Whether select and its kin keep an item.
static bool keeps(const FilterCall &call, const Value &value,
                  const Arguments &rest, const Value *test, bool &result) {
  if (!test) {
    result = truth(value);
    return true;
  }
  std::string_view name;
  if (!call.in.wantText(*test, call.what(), name))
    return false;
  if (!isTest(name))
    return call.in.fail("No test named '" + std::string(name) + "'.");
  return call.in.applyTest(name, value, rest, result);
}

static bool applySelect(const FilterCall &call) {
  bool byAttribute = call.name == "selectattr" || call.name == "rejectattr";
  bool selects = call.name == "select" || call.name == "selectattr";
  std::vector<Value> items, kept;
  // A false value, None too, has nothing to select from.
  if (truth(call.input) && !inputItems(call, items))
    return false;
  const std::vector<Value> &positional = call.args.positional;
  size_t used = byAttribute ? 1 : 0;
  if (positional.size() < used)
    return items.empty() ? giveList(call, {}, Kind::Generator)
                         : call.in.fail("Missing parameter for attribute name");
  AttributeGetter getter(call, byAttribute ? positional[0] : Value(), false);
  const Value *test = positional.size() > used ? &positional[used] : nullptr;
  Arguments rest;
  rest.named = call.args.named;
  for (size_t i = used + 1; i < positional.size(); ++i)
    rest.positional.push_back(positional[i]);
  for (const Value &item : items) {
    Value value;
    bool result;
    if (!getter.get(item, value) || !keeps(call, value, rest, test, result))
      return false;
    if (result == selects)
      kept.push_back(item);
  }
  return giveList(call, std::move(kept), Kind::Generator);
}

static bool applyMap(const FilterCall &call) {
  std::vector<Value> items;
  if (!inputItems(call, items))
    return false;
  if (call.args.positional.empty()) {
    Value values[2];
    bool given[2];
    if (!call.in.bind(call.what(), call.args, {"attribute", "default"}, 1,
                      values, given))
      return false;
    bool hasDefault = given[1] && !values[1].isNone();
    AttributeGetter getter(call, values[0], false,
                           hasDefault ? &values[1] : nullptr);
    for (Value &item : items) {
      Value value;
      if (!getter.get(item, value))
        return false;
      item = value;
    }
    return giveList(call, std::move(items), Kind::Generator);
  }
  std::string_view name;
  Arguments rest = call.args;
  if (!call.in.wantText(rest.positional[0], call.what(), name))
    return false;
  rest.positional.erase(rest.positional.begin());
  if (!isFilter(name))
    return call.in.fail("No filter named '" + std::string(name) + "'.");
  if (name == "map" && !items.empty() && rest.positional.empty() &&
      rest.named.empty())
    return call.in.fail("map requires a filter argument");
  for (Value &item : items) {
    Value value;
    if (!call.in.step() || !call.in.applyFilter(name, item, rest, value))
      return false;
    item = value;
  }
  return giveList(call, std::move(items), Kind::Generator);
}

static bool applyBatch(const FilterCall &call) {
  Value values[2];
  bool given[2];
  std::vector<Value> items, batches;
  int64_t count;
  if (!call.in.bind(call.what(), call.args, {"linecount", "fill_with"}, 1,
                    values, given) ||
      !call.in.wantInteger(values[0], call.what(), count) ||
      !inputItems(call, items))
    return false;
  if (count < 1 || count > 100000)
    return call.in.fail(call.what() + ": a count from 1 to 100000");
  for (size_t i = 0; i < items.size(); ++i) {
    if (i % static_cast<size_t>(count) == 0)
      batches.push_back(call.in.newList());
    if (!call.in.append(batches.back(), items[i]))
      return false;
  }
  while (!batches.empty() && given[1] && !values[1].isNone() &&
         batches.back().list().items.size() < static_cast<size_t>(count))
    if (!call.in.append(batches.back(), values[1]))
      return false;
  return giveList(call, std::move(batches), Kind::Generator);
}

static bool applySlice(const FilterCall &call) {
  Value values[2];
  bool given[2];
  std::vector<Value> items, slices;
  int64_t count;
  if (!call.in.bind(call.what(), call.args, {"slices", "fill_with"}, 1, values,
                    given) ||
      !call.in.wantInteger(values[0], call.what(), count) ||
      !inputItems(call, items))
    return false;
  if (count < 1 || count > 100000)
    return call.in.fail(call.what() + ": a count from 1 to 100000");
  auto number = static_cast<size_t>(count);
  size_t each = items.size() / number, more = items.size() % number, at = 0;
  for (size_t i = 0; i < number; ++i) {
    slices.push_back(call.in.newList());
    size_t size = each + (i < more ? 1 : 0);
    for (size_t j = 0; j < size; ++j)
      if (!call.in.append(slices.back(), items[at++]))
        return false;
    if (given[1] && !values[1].isNone() && i >= more)
      if (!call.in.append(slices.back(), values[1]))
        return false;
  }
  return giveList(call, std::move(slices), Kind::Generator);
}

const FilterEntry *findSequenceFilter(std::string_view name) {
  static const FilterEntry filters[] = {
      {"attr", applyAttr},         {"batch", applyBatch},
      {"count", applyLength},      {"d", applyDefault},
      {"default", applyDefault},   {"dictsort", applyDictSort},
      {"first", applyFirstLast},   {"groupby", applyGroupBy},
      {"items", applyItems},       {"join", applyJoin},
      {"last", applyFirstLast},    {"length", applyLength},
      {"list", applyList},         {"map", applyMap},
      {"max", applyMinMax},        {"min", applyMinMax},
      {"reject", applySelect},     {"rejectattr", applySelect},
      {"reverse", applyReverse},   {"select", applySelect},
      {"selectattr", applySelect}, {"slice", applySlice},
      {"sort", applySort},         {"sum", applySum},
      {"unique", applyUnique},
  };
  for (const FilterEntry &filter : filters)
    if (filter.name == name)
      return &filter;
  return nullptr;
}

} // namespace attune::runtime::jinja
