//===- CudaPersistent.cpp - Many launches as one kernel -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPersistent.h"

#include "CudaGraph.h"

#include <algorithm>
#include <cstring>

namespace attune::runtime {

int64_t CudaPersistent::kernelOf(const CudaLaunches &work) const {
  if (!usable || multiprocessors == 0 || work.launches.empty())
    return -1;
  for (const CudaInstruction &first : work.launches.front().instructions)
    if (first.kernel >= 0 &&
        std::all_of(work.launches.begin(), work.launches.end(),
                    [&](const CudaLaunches::Launch &launch) {
                      return launch.in(first.kernel);
                    }))
      return first.kernel;
  return -1;
}

static std::vector<StepLaunch> describe(const CudaLaunches &work,
                                        int64_t kernel) {
  std::vector<StepLaunch> launches;
  launches.reserve(work.launches.size());
  for (const CudaLaunches::Launch &launch : work.launches) {
    const CudaInstruction &here = *launch.in(kernel);
    launches.push_back({static_cast<uint32_t>(here.number), launch.sizes[0],
                        static_cast<uint32_t>(here.atOnce),
                        work.words.data() + launch.firstWord, launch.numWords,
                        work.accesses.data() + launch.firstAccess,
                        launch.numAccesses});
  }
  return launches;
}

bool CudaPersistent::write(CudaProgram &program, const CudaLaunches &work,
                           CudaHandle stream) {
  int64_t kernel = kernelOf(work);
  if (program.kernel != kernel) {
    int perMultiprocessor = 0;
    program.kernel = kernel;
    const CudaInstruction &first = *work.launches.front().in(kernel);
    program.threads = static_cast<unsigned>(first.threads);
    program.sharedBytes = static_cast<unsigned>(first.sharedBytes);
    auto allow = [&](int attribute, unsigned value) {
      return driver.functionSetAttribute(kernels[kernel], attribute,
                                         static_cast<int>(value)) == 0;
    };
    bool allowed =
        program.sharedBytes == 0 ||
        (allow(CudaDriver::functionSharedBytes, program.sharedBytes) &&
         allow(CudaDriver::functionSharedPercent, 100));
    if (!allowed || driver.occupancy(&perMultiprocessor, kernels[kernel],
                                     static_cast<int>(program.threads),
                                     program.sharedBytes) != 0)
      perMultiprocessor = 0;
    program.blocks = static_cast<unsigned>(perMultiprocessor) * multiprocessors;
  }
  // What failed here would fail at every step.
  usable =
      program.blocks != 0 && writeList(program, describe(work, kernel), stream);
  return usable;
}

bool CudaPersistent::writeList(CudaProgram &program,
                               const std::vector<StepLaunch> &launches,
                               CudaHandle stream) const {
  StepSchedule schedule = makeSchedule(launches, program.blocks);
  if (!findScheduleProblem(schedule, launches, program.blocks).empty())
    return false;
  std::vector<char> image;
  auto put = [&](const auto &values) {
    size_t at = image.size(), bytes = values.size() * sizeof(values[0]);
    image.resize((at + bytes + 15) / 16 * 16);
    if (bytes)
      std::memcpy(image.data() + at, values.data(), bytes);
    return at;
  };
  program.size = schedule.instructions.size();
  // One for each instruction, and one for blocks that are done.
  put(std::vector<uint32_t>(program.size + 1));
  program.instructions = put(schedule.instructions);
  program.waits = put(schedule.waits);
  program.words = put(schedule.words);
  return copyChanges(program, std::move(image), stream);
}

bool CudaPersistent::copyChanges(CudaProgram &program, std::vector<char> image,
                                 CudaHandle stream) const {
  // Pieces that a driver takes over at once, without waiting for the stream.
  constexpr size_t piece = 4 << 10, most = 32 << 10;
  bool fresh = image.size() != program.image.size();
  if (image.size() > program.capacity) {
    if (program.memory)
      driver.memFree(program.memory);
    program.memory = 0;
    program.capacity = 0;
    if (driver.memAlloc(&program.memory, image.size()) != 0)
      return false;
    program.capacity = image.size();
    fresh = true;
  }
  // The kernel leaves the counters as they are here.
  program.image.resize(image.size());
  auto changed = [&](size_t from) {
    size_t bytes = std::min(piece, image.size() - from);
    return fresh || std::memcmp(image.data() + from,
                                program.image.data() + from, bytes) != 0;
  };
  std::vector<std::pair<size_t, size_t>> ranges;
  for (size_t from = 0; from < image.size(); from += piece) {
    if (!changed(from))
      continue;
    size_t end = std::min(from + piece, image.size());
    if (!ranges.empty() && ranges.back().second == from &&
        end - ranges.back().first <= most)
      ranges.back().second = end;
    else
      ranges.emplace_back(from, end);
  }
  program.image = std::move(image);
  for (auto [from, end] : ranges)
    if (driver.copyToDevice(program.memory + from, program.image.data() + from,
                            end - from, stream) != 0)
      return false;
  return true;
}

CudaResult CudaPersistent::start(const CudaProgram &program,
                                 CudaHandle stream) const {
  uint64_t words[] = {
      program.memory + program.instructions, program.memory + program.waits,
      program.memory + program.words, program.memory, program.size};
  void *params[] = {&words[0], &words[1], &words[2], &words[3], &words[4]};
  return driver.launchCooperative(kernels[program.kernel], program.blocks, 1, 1,
                                  program.threads, 1, 1, program.sharedBytes,
                                  stream, params);
}

void CudaPersistent::destroy(CudaProgram &program) const {
  if (program.memory)
    driver.memFree(program.memory);
  program = CudaProgram();
}

} // namespace attune::runtime
