//===- RequestFields.h - Members of a request's JSON ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_REQUESTFIELDS_H
#define ATTUNE_LIB_RUNTIME_SERVE_REQUESTFIELDS_H

#include "attune/Runtime/Json.h"

#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// Why a request is refused.
struct RequestError {
  int status = 400;
  std::string message, parameter, code;

  bool set(std::string text, std::string_view name = "",
           std::string_view kind = "") {
    message = std::move(text);
    parameter = name;
    code = kind;
    return false;
  }
  /// The same for a name of a model that is not there.
  bool setNoModel(std::string text) {
    status = 404;
    return set(std::move(text), "model", "model_not_found");
  }
};

/// Reads members by name and type. A member that is null counts as absent; then
/// nothing is changed. Each function is false where the value is wrong, and
/// says what was expected.
class RequestFields {
public:
  RequestFields(const JsonValue &object, RequestError &error)
      : object(object), error(error) {}

  /// The member, or null.
  const JsonValue *find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  bool take(std::string_view name, bool &value);
  bool take(std::string_view name, int64_t least, int64_t most, int64_t &value);
  bool take(std::string_view name, double least, double most, double &value);
  bool take(std::string_view name, std::string &value);
  /// A text, or several.
  bool take(std::string_view name, size_t most,
            std::vector<std::string> &values);
  /// Ids from 0 to below `end`.
  bool takeIds(std::string_view name, const JsonValue &value, int64_t end,
               std::vector<int64_t> &ids);

  bool expected(std::string_view name, const std::string &what,
                const JsonValue &found);

private:
  const JsonValue &object;
  RequestError &error;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_REQUESTFIELDS_H
