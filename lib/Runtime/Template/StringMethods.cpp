//===- StringMethods.cpp - Methods of texts -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"
#include "Text.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>

namespace attune::runtime::jinja {

namespace {

/// One call of a method of a text.
class StringMethod {
public:
  StringMethod(Interpreter &in, const Value &self, std::string_view name,
               const Arguments &args, Value &out)
      : in(in), text(self.text()), name(name), args(args), out(out) {}

  bool run();

private:
  bool bind(std::initializer_list<std::string_view> names, size_t required) {
    return in.bind("str." + std::string(name), args, names, required, values,
                   given);
  }
  bool want(int i, std::string_view &to) {
    return in.wantText(values[i], "str." + std::string(name), to);
  }
  bool want(int i, int64_t &to) {
    return in.wantInteger(values[i], "str." + std::string(name), to);
  }
  bool give(std::string result) {
    out = in.newString(std::move(result));
    return in.step(text.size() / 16);
  }
  bool give(bool result) {
    out = Value::boolean(result);
    return in.step(text.size() / 16);
  }

  bool strip();
  bool split();
  bool splitLines();
  bool affix();
  bool removeAffix();
  bool replace();
  bool search();
  bool justify();
  bool partition();
  bool join();
  bool classify();
  bool window(std::string_view &part, size_t &offset);

  Interpreter &in;
  std::string_view text, name;
  const Arguments &args;
  Value &out;
  Value values[3];
  bool given[3] = {false, false, false};
};

} // namespace

/// Whether `text` starts with one of the characters in `set`, and its length.
static unsigned inSet(std::string_view text, std::string_view set) {
  size_t n = characterOffset(text, 1);
  return !text.empty() && set.find(text.substr(0, n)) != std::string_view::npos
             ? static_cast<unsigned>(n)
             : 0;
}

bool StringMethod::strip() {
  if (!bind({"chars"}, 0))
    return false;
  bool left = name != "rstrip", right = name != "lstrip";
  std::string_view part = text, set;
  if (!given[0] || values[0].isNone()) {
    part = left ? trimLeft(part) : part;
    return give(std::string(right ? trimRight(part) : part));
  }
  if (!want(0, set))
    return false;
  while (left && inSet(part, set))
    part.remove_prefix(inSet(part, set));
  while (right && !part.empty()) {
    size_t last = part.size() - 1;
    while (last > 0 && (part[last] & 0xC0) == 0x80)
      --last;
    if (!inSet(part.substr(last), set))
      break;
    part = part.substr(0, last);
  }
  return give(std::string(part)) &&
         in.step(text.size() * (set.size() + 16) / 64);
}

bool StringMethod::split() {
  if (!bind({"sep", "maxsplit"}, 0))
    return false;
  int64_t most = -1;
  std::string_view separator;
  bool bySpace = !given[0] || values[0].isNone();
  if ((given[1] && !want(1, most)) || (!bySpace && !want(0, separator)))
    return false;
  if (!bySpace && separator.empty())
    return in.fail("empty separator");
  bool fromRight = name == "rsplit";
  std::vector<std::string_view> parts;
  std::string_view rest = text;
  if (bySpace)
    rest = fromRight ? trimRight(rest) : trimLeft(rest);
  while (bySpace ? !rest.empty() : true) {
    bool last = most >= 0 && static_cast<int64_t>(parts.size()) >= most;
    size_t at = std::string_view::npos, length = separator.size();
    if (!last && !bySpace) {
      at = fromRight ? rest.rfind(separator) : rest.find(separator);
    } else if (!last && !fromRight) {
      for (at = 0; at < rest.size() && !spaceAt(rest.substr(at));)
        ++at;
      length = 0;
    } else if (!last) {
      at = rest.size();
      while (at > 0 && trimRight(rest.substr(0, at)).size() == at)
        --at;
      // Back to the begin of a character that was cut.
      length = 0;
    }
    if (at == std::string_view::npos ||
        (bySpace && at == (fromRight ? 0 : rest.size()))) {
      // With a bound, what is left keeps the white space at its other end.
      parts.push_back(!bySpace    ? rest
                      : !last     ? rest
                      : fromRight ? trimRight(rest)
                                  : rest);
      break;
    }
    if (fromRight) {
      parts.push_back(rest.substr(at + length));
      rest = rest.substr(0, at);
      rest = bySpace ? trimRight(rest) : rest;
    } else {
      parts.push_back(rest.substr(0, at));
      rest.remove_prefix(at + length);
      rest = bySpace ? trimLeft(rest) : rest;
    }
    if (!in.step(2))
      return false;
  }
  if (fromRight)
    std::reverse(parts.begin(), parts.end());
  Value list = in.newList();
  for (std::string_view part : parts)
    if (!in.append(list, in.newString(std::string(part))))
      return false;
  out = list;
  return in.step(text.size() / 8);
}

bool StringMethod::splitLines() {
  if (!bind({"keepends"}, 0))
    return false;
  bool keep = given[0] && truth(values[0]);
  Value list = in.newList();
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t end = 0;
    unsigned length = 0;
    while (end < rest.size()) {
      uint32_t c = 0;
      unsigned n = decodeUtf8(rest.substr(end), c);
      bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) ||
                  c == 0x85 || c == 0x2028 || c == 0x2029;
      if (n && ends) {
        length = n;
        if (c == '\r' && end + 1 < rest.size() && rest[end + 1] == '\n')
          length = 2;
        break;
      }
      end += n ? n : 1;
    }
    if (!in.append(list, in.newString(std::string(
                             rest.substr(0, keep ? end + length : end)))))
      return false;
    rest.remove_prefix(end + length);
  }
  out = list;
  return in.step(text.size() / 8);
}

/// The part that start and end leave.
bool StringMethod::window(std::string_view &part, size_t &offset) {
  int64_t size = countCharacters(text), bounds[2] = {0, size};
  for (int i = 0; i < 2; ++i) {
    if (!given[i + 1] || values[i + 1].isNone())
      continue;
    if (!want(i + 1, bounds[i]))
      return false;
    if (bounds[i] < 0)
      bounds[i] = std::max<int64_t>(bounds[i] + size, 0);
  }
  if (bounds[0] > size || bounds[0] > bounds[1]) {
    offset = std::string_view::npos; // nothing, not even the empty text
    return true;
  }
  offset = characterOffset(text, bounds[0]);
  part = text.substr(offset);
  part = part.substr(0, characterOffset(part, bounds[1] - bounds[0]));
  return true;
}

bool StringMethod::affix() {
  std::string_view part;
  size_t offset;
  if (!bind({"prefix", "start", "end"}, 1) || !window(part, offset))
    return false;
  std::vector<Value> choices = {values[0]};
  if (values[0].is(Kind::Tuple))
    choices = values[0].list().items;
  bool result = false, atEnd = name == "endswith";
  for (const Value &choice : choices) {
    std::string_view sought;
    if (!in.wantText(choice, "str." + std::string(name), sought))
      return false;
    if (offset == std::string_view::npos || sought.size() > part.size())
      continue;
    size_t at = atEnd ? part.size() - sought.size() : 0;
    result = result || part.substr(at, sought.size()) == sought;
  }
  return give(result);
}

bool StringMethod::removeAffix() {
  std::string_view affix;
  if (!bind({"affix"}, 1) || !want(0, affix))
    return false;
  std::string_view part = text;
  if (part.size() >= affix.size()) {
    size_t rest = part.size() - affix.size();
    if (name == "removeprefix" && part.substr(0, affix.size()) == affix)
      part.remove_prefix(affix.size());
    else if (name == "removesuffix" && part.substr(rest) == affix)
      part = part.substr(0, rest);
  }
  return give(std::string(part));
}

bool StringMethod::replace() {
  std::string_view old, fresh;
  int64_t most = -1;
  if (!bind({"old", "new", "count"}, 2) || !want(0, old) || !want(1, fresh) ||
      (given[2] && !want(2, most)))
    return false;
  Interpreter::Builder result(in);
  std::string_view rest = text;
  int64_t count = 0;
  for (; most < 0 || count < most; ++count) {
    if (!in.step())
      return false;
    if (old.empty()) {
      // Between all characters, and at both ends.
      result.add(fresh);
      if (rest.empty())
        break;
      size_t n = characterOffset(rest, 1);
      result.add(rest.substr(0, n));
      rest.remove_prefix(n);
      continue;
    }
    size_t at = rest.find(old);
    if (at == std::string_view::npos)
      break;
    result.add(rest.substr(0, at)).add(fresh);
    rest.remove_prefix(at + old.size());
  }
  result.add(rest);
  out = result.take();
  return in.step(text.size() / 16);
}

/// find, rfind, index, rindex, count
bool StringMethod::search() {
  std::string_view sought, part;
  size_t offset;
  if (!bind({"sub", "start", "end"}, 1) || !want(0, sought) ||
      !window(part, offset) || !in.step(text.size() / 16))
    return false;
  bool none = offset == std::string_view::npos;
  if (name == "count") {
    int64_t count = 0;
    if (!none && sought.empty())
      count = countCharacters(part) + 1;
    for (size_t at = part.find(sought);
         !none && !sought.empty() && at != std::string_view::npos;
         at = part.find(sought, at + sought.size()))
      ++count;
    out = Value::integer(count);
    return true;
  }
  bool last = name[0] == 'r';
  size_t at = none   ? std::string_view::npos
              : last ? part.rfind(sought)
                     : part.find(sought);
  if (at != std::string_view::npos) {
    out = Value::integer(countCharacters(text.substr(0, offset + at)));
    return true;
  }
  out = Value::integer(-1);
  return name == "find" || name == "rfind" || in.fail("substring not found");
}

/// ljust, rjust, center, zfill
bool StringMethod::justify() {
  int64_t width;
  std::string_view fill = name == "zfill" ? "0" : " ";
  if (!bind({"width", "fillchar"}, 1) || !want(0, width) ||
      (given[1] && !want(1, fill)))
    return false;
  if (countCharacters(fill) != 1)
    return in.fail("the fill character must be exactly one character long");
  int64_t missing = std::max<int64_t>(width - countCharacters(text), 0);
  if (missing > 1000000)
    return in.fail("a width of more than a million characters");
  int64_t left = name == "rjust" || name == "zfill" ? missing : 0;
  // Python puts the odd one to the left if the width is odd.
  if (name == "center")
    left = missing / 2 + (missing & width & 1);
  Interpreter::Builder result(in);
  std::string_view rest = text;
  if (name == "zfill" && !rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    result.add(rest.substr(0, 1));
    rest.remove_prefix(1);
  }
  for (int64_t i = 0; i < left; ++i)
    result.add(fill);
  result.add(rest);
  for (int64_t i = left; i < missing; ++i)
    result.add(fill);
  out = result.take();
  return in.step(0);
}

bool StringMethod::partition() {
  std::string_view separator;
  if (!bind({"sep"}, 1) || !want(0, separator))
    return false;
  if (separator.empty())
    return in.fail("empty separator");
  bool last = name == "rpartition";
  size_t at = last ? text.rfind(separator) : text.find(separator);
  std::string_view parts[3] = {text, "", ""};
  if (at != std::string_view::npos) {
    parts[0] = text.substr(0, at);
    parts[1] = separator;
    parts[2] = text.substr(at + separator.size());
  } else if (last) {
    std::swap(parts[0], parts[2]);
  }
  Value tuple = in.newList(Kind::Tuple);
  for (std::string_view part : parts)
    if (!in.append(tuple, in.newString(std::string(part))))
      return false;
  out = tuple;
  return in.step(text.size() / 16);
}

bool StringMethod::join() {
  std::vector<Value> items;
  if (!bind({"iterable"}, 1) || !in.itemsOf(values[0], items))
    return false;
  Interpreter::Builder result(in);
  for (size_t i = 0; i < items.size(); ++i) {
    std::string_view item;
    if (!items[i].isString())
      return in.fail("sequence item " + std::to_string(i) +
                     ": expected str instance, " + items[i].typeName() +
                     " found");
    item = items[i].text();
    result.add(i ? text : std::string_view()).add(item);
  }
  out = result.take();
  return in.step(items.size());
}

/// isalpha and its kin: whether all characters are of a class.
bool StringMethod::classify() {
  if (!bind({}, 0))
    return false;
  bool cased = false, all = !text.empty();
  bool before = false;
  std::string_view rest = text;
  while (!rest.empty() && all) {
    uint32_t c = 0;
    unsigned n = decodeUtf8(rest, c);
    bool digit = c >= '0' && c <= '9', isCased = isIn(CharacterClass::Cased, c);
    bool alpha = isIn(CharacterClass::Alpha, c), up = isCased && isUpper(c);
    if (name == "isalpha")
      all = alpha;
    else if (name == "isalnum")
      all = alpha || digit;
    else if (name == "isspace")
      all = spaceAt(rest) != 0;
    else if (name == "isascii")
      all = c < 0x80;
    else if (name == "islower" || name == "isupper")
      all = !isCased || up == (name == "isupper");
    else if (name == "istitle")
      all = !isCased || up != before;
    else if (name == "isidentifier")
      all = alpha || c == '_' || (digit && rest.size() != text.size());
    else
      all = digit;
    cased = cased || isCased;
    before = isCased;
    rest.remove_prefix(n ? n : 1);
  }
  if (name == "islower" || name == "isupper" || name == "istitle")
    all = all && cased;
  if (name == "isascii")
    all = all || text.empty();
  return give(all);
}

bool StringMethod::run() {
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    return strip();
  if (name == "split" || name == "rsplit")
    return split();
  if (name == "splitlines")
    return splitLines();
  if (name == "startswith" || name == "endswith")
    return affix();
  if (name == "removeprefix" || name == "removesuffix")
    return removeAffix();
  if (name == "replace")
    return replace();
  if (name == "find" || name == "rfind" || name == "index" ||
      name == "rindex" || name == "count")
    return search();
  if (name == "ljust" || name == "rjust" || name == "center" || name == "zfill")
    return justify();
  if (name == "partition" || name == "rpartition")
    return partition();
  if (name == "join")
    return join();
  if (name == "format")
    return in.formatBraces(text, args, out);
  if (name.substr(0, 2) == "is")
    return classify();
  if (!bind({}, 0))
    return false;
  if (name == "upper")
    return give(toUpper(text));
  if (name == "lower" || name == "casefold")
    return give(toLower(text));
  if (name == "title")
    return give(toTitle(text));
  if (name == "capitalize")
    return give(capitalize(text));
  if (name == "swapcase")
    return give(swapCase(text));
  return in.fail("the method str." + std::string(name) +
                 " is not for chat templates");
}

bool Interpreter::stringMethod(const Value &self, std::string_view name,
                               const Arguments &args, Value &out) {
  return StringMethod(*this, self, name, args, out).run();
}

} // namespace attune::runtime::jinja
