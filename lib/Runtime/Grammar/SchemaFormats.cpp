//===- SchemaFormats.cpp - Formats of strings as patterns -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaFormats.h"

namespace attune::runtime {

// RFC 3339, section 5.6. Leap seconds are not written.
static const char day[] =
    "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]"
    "\\d|30)|02-(0[1-9]|1\\d|2[0-8]))|(\\d\\d(0[48]|[2468][048]|[13579][26])|"
    "([02468][048]|[13579][26])00)-02-29)";
static const char timeOfDay[] =
    "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):"
    "[0-5]\\d)";
/// RFC 3339, appendix A; numbers of at most 9 digits.
static const char duration[] =
    "P(\\d{1,9}W|(\\d{1,9}D|\\d{1,9}M(\\d{1,9}D)?|\\d{1,9}Y(\\d{1,9}M(\\d{1,9}D"
    ")?)?)(TIME)?|TIME)";
static const char durationTime[] =
    "T(\\d{1,9}H(\\d{1,9}M(\\d{1,9}S)?)?|\\d{1,9}M(\\d{1,9}S)?|\\d{1,9}S)";

// RFC 1123, section 2.1: labels of at most 61 characters without two hyphens in
// a row, which RFC 5890 reserves; four labels at most, together less than 253
// characters. The last one begins with a letter.
static const char label[] = "[A-Za-z0-9](-?[A-Za-z0-9]){0,30}";
static const char lastLabel[] = "[A-Za-z](-?[A-Za-z0-9]){0,30}";

static const char ipv4[] = "((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(25[0-"
                           "5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";

/// RFC 4291, section 2.2, forms 1 and 2: eight groups, or "::" for some.
static std::string ipv6() {
  static const std::string group = "[0-9A-Fa-f]{1,4}";
  std::string all = "((" + group + ":){7}" + group + "|(" + group +
                    ":){1,7}:|:((:" + group + "){1,7}|:)";
  for (int before = 1; before < 7; ++before)
    all += "|(" + group + ":){" + std::to_string(before) + "}(:" + group +
           "){1," + std::to_string(7 - before) + "}";
  return all + ")";
}

/// RFC 3986, section 3: no names of users, and ports of at most four digits.
/// Nothing is counted, as limits of length often stand beside it.
static std::string uri() {
  const std::string name = "[A-Za-z0-9](-?[A-Za-z0-9])*";
  const std::string character =
      "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
  const std::string rest = "([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*";
  return "[A-Za-z][A-Za-z0-9+.-]*:(//" + name + "(\\." + name +
         ")*(:[1-9]\\d{0,3})?(/" + character + "*)*|" + character + "+(/" +
         character + "*)*)(\\?" + rest + ")?(#" + rest + ")?";
}

/// RFC 6901, section 3.
static const char jsonPointer[] = "(/([^/~]|~[01])*)*";

std::string patternOfFormat(std::string_view format) {
  auto whole = [](const std::string &pattern) { return "^" + pattern + "$"; };
  if (format == "date")
    return whole(day);
  if (format == "time")
    return whole(timeOfDay);
  if (format == "date-time")
    return whole(day + std::string("T") + timeOfDay);
  if (format == "duration") {
    std::string pattern = duration;
    for (size_t at; (at = pattern.find("TIME")) != std::string::npos;)
      pattern.replace(at, 4, durationTime);
    return whole(pattern);
  }
  if (format == "uuid") // RFC 4122, section 3
    return whole("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");
  if (format == "ipv4") // RFC 2673, section 3.2
    return whole(ipv4);
  if (format == "ipv6")
    return whole(ipv6());
  if (format == "hostname" || format == "idn-hostname")
    return whole("(" + std::string(label) + "\\.){0,3}" + lastLabel);
  // RFC 5321, section 4.1.2: dots, letters, digits and _ + - before the @, at
  // most 64 of them; behind it a name with a dot. 254 characters are the most.
  if (format == "email" || format == "idn-email")
    return whole("[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,10}){0,4}@([A-Za-z0"
                 "-9](-?[A-Za-z0-9]){0,22}\\.){1,3}[A-Za-z](-?[A-Za-z0-9]){0,22"
                 "}");
  // Each URI is one of the others, too.
  for (const char *name :
       {"uri", "uri-reference", "iri", "iri-reference", "uri-template"})
    if (format == name)
      return whole(uri());
  if (format == "json-pointer")
    return whole(jsonPointer);
  if (format == "relative-json-pointer")
    return whole("(0|[1-9]\\d{0,8})(#|" + std::string(jsonPointer) + ")");
  return "";
}

} // namespace attune::runtime
