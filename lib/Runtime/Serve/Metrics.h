//===- Metrics.h - Counters of a server -------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_METRICS_H
#define ATTUNE_LIB_RUNTIME_SERVE_METRICS_H

#include "Scheduler.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// How often seconds were in which range.
class Histogram {
public:
  void add(double seconds);
  void format(std::string &out, const char *name, const char *help) const;

private:
  static constexpr double bounds[] = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100};
  static constexpr size_t numBounds = sizeof(bounds) / sizeof(bounds[0]);
  uint64_t counts[numBounds + 1] = {};
  double sum = 0;
};

/// Used by the loop's thread alone.
class Metrics {
public:
  /// A request was answered. `path` is one that the server knows.
  void countRequest(std::string_view path, int status, double seconds,
                    double untilFirstToken);
  /// The text format of Prometheus, version 0.0.4.
  /// `cutBytes`: of texts that became tokens.
  std::string format(const Scheduler &scheduler, size_t connections,
                     int64_t cutBytes) const;

private:
  struct Requests {
    std::string path;
    int status;
    uint64_t count;
  };
  std::vector<Requests> requests;
  Histogram durations, firstTokens;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_METRICS_H
