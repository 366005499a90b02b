//===- CudaPersistent.cpp - Many launches as one kernel -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPersistent.h"

#include "CudaGraph.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace attune::runtime {

bool CudaPersistent::refuse(const std::string &why) {
  if (!refused.load()) {
    refusal = why;
    refused.store(true);
  }
  return false;
}

int64_t CudaPersistent::kernelOf(const CudaLaunches &work) {
  auto isKernel = [](const CudaLaunches::Launch &launch) {
    return !launch.isExchange();
  };
  auto first =
      std::find_if(work.launches.begin(), work.launches.end(), isKernel);
  if (refused.load() || first == work.launches.end())
    return -1;
  for (const CudaInstruction &one : first->instructions)
    if (one.kernel >= 0 && std::all_of(first, work.launches.end(),
                                       [&](const CudaLaunches::Launch &launch) {
                                         return launch.isExchange() ||
                                                launch.in(one.kernel);
                                       })) {
      if (multiprocessors > 0)
        return one.kernel;
      refuse("the GPU or its driver cannot start all blocks of a kernel "
             "together");
    }
  return -1;
}

/// 0: they cannot all run at once.
unsigned CudaPersistent::blocksOf(const CudaInstruction &one) {
  for (const Room &room : rooms)
    if (room.kernel == one.kernel)
      return room.blocks;
  CudaHandle kernel = kernels[one.kernel];
  auto allow = [&](int attribute, int64_t value) {
    return driver.functionSetAttribute(kernel, attribute,
                                       static_cast<int>(value)) == 0;
  };
  bool allowed = one.sharedBytes == 0 ||
                 (allow(CudaDriver::functionSharedBytes, one.sharedBytes) &&
                  allow(CudaDriver::functionSharedPercent, 100));
  int perMultiprocessor = 0;
  if (!allowed || driver.occupancy(&perMultiprocessor, kernel,
                                   static_cast<int>(one.threads),
                                   static_cast<size_t>(one.sharedBytes)) != 0)
    perMultiprocessor = 0;
  rooms.push_back(
      {one.kernel, static_cast<unsigned>(perMultiprocessor) * multiprocessors});
  return rooms.back().blocks;
}

static std::vector<StepLaunch> describe(const CudaLaunches &work, size_t first,
                                        size_t last, int64_t kernel) {
  std::vector<StepLaunch> launches;
  launches.reserve(last - first);
  for (size_t i = first; i < last; ++i) {
    const CudaLaunches::Launch &launch = work.launches[i];
    const CudaInstruction &here = *launch.in(kernel);
    launches.push_back({static_cast<uint32_t>(here.number), launch.sizes[0],
                        static_cast<uint32_t>(here.atOnce),
                        work.words.data() + launch.firstWord, launch.numWords,
                        work.accesses.data() + launch.firstAccess,
                        launch.numAccesses});
  }
  return launches;
}

bool CudaPersistent::addRun(CudaProgram &program, std::vector<char> &image,
                            const CudaLaunches &work, int64_t kernel,
                            size_t first, size_t last) {
  const CudaInstruction &one = *work.launches[first].in(kernel);
  unsigned blocks = blocksOf(one);
  if (blocks == 0)
    return refuse("a multiprocessor has no room for a block of " +
                  std::to_string(one.threads) + " threads and " +
                  std::to_string(one.sharedBytes) + " bytes of shared memory");
  std::vector<StepLaunch> launches = describe(work, first, last, kernel);
  StepSchedule schedule = makeSchedule(launches, blocks);
  std::string problem = findScheduleProblem(schedule, launches, blocks);
  if (!problem.empty())
    return refuse("of its list " + problem);
  auto put = [&](const auto &values) {
    size_t at = image.size(), bytes = values.size() * sizeof(values[0]);
    image.resize((at + bytes + 15) / 16 * 16);
    if (bytes)
      std::memcpy(image.data() + at, values.data(), bytes);
    return at;
  };
  CudaRun run = {kernel,
                 blocks,
                 static_cast<unsigned>(one.threads),
                 static_cast<unsigned>(one.sharedBytes),
                 schedule.instructions.size(),
                 0,
                 0,
                 0,
                 0};
  // One for each instruction, and one for blocks that are done.
  run.counters = put(std::vector<uint32_t>(run.size + 1));
  run.instructions = put(schedule.instructions);
  run.waits = put(schedule.waits);
  run.words = put(schedule.words);
  program.runs.push_back(run);
  return true;
}

bool CudaPersistent::write(CudaProgram &program, const CudaLaunches &work,
                           CudaHandle stream) {
  std::vector<char> image;
  program.runs.clear();
  program.isWhole = true;
  // What fails here would fail at every step.
  return addRun(program, image, work, kernelOf(work), 0,
                work.launches.size()) &&
         copyChanges(program, std::move(image), stream);
}

/// Arguments of the kernel.
static std::array<uint64_t, 5> wordsOf(const CudaProgram &program,
                                       const CudaRun &run) {
  return {program.memory + run.instructions, program.memory + run.waits,
          program.memory + run.words, program.memory + run.counters, run.size};
}

bool CudaPersistent::join(CudaProgram &program, const CudaLaunches &work,
                          CudaLaunches &joined, CudaHandle stream) {
  // No kernel starts early beside an exchange, so that a list saves a launch
  // for each of its instructions but the first.
  constexpr size_t least = 2;
  int64_t kernel = kernelOf(work);
  if (kernel < 0)
    return false;
  std::vector<char> image;
  std::vector<size_t> ends; ///< of the launches of each run
  program.runs.clear();
  for (size_t first = 0, last = 0; first < work.launches.size();
       first = last + 1) {
    last = first;
    while (last < work.launches.size() && !work.launches[last].isExchange())
      ++last;
    if (last - first < least)
      continue;
    if (!addRun(program, image, work, kernel, first, last))
      return false;
    ends.push_back(last);
  }
  if (ends.empty())
    return false;
  // Addresses are known then.
  if (!copyChanges(program, std::move(image), stream))
    return false;
  joined.clear();
  size_t next = 0;
  for (size_t i = 0; i < work.launches.size();) {
    const CudaRun &run = program.runs[std::min(next, ends.size() - 1)];
    if (next == ends.size() || i + run.size != ends[next]) {
      joined.addAgain(work, i++);
      continue;
    }
    auto words = wordsOf(program, run);
    joined.add(run.kernel, {run.blocks, 1, 1, run.threads, 1, 1},
               run.sharedBytes, words.data(), words.size());
    joined.launches.back().together = true;
    i = ends[next++];
  }
  return true;
}

bool CudaPersistent::copyChanges(CudaProgram &program, std::vector<char> image,
                                 CudaHandle stream) {
  // Pieces that a driver takes over at once, without waiting for the stream.
  constexpr size_t piece = 4 << 10, most = 32 << 10;
  bool fresh = image.size() != program.image.size();
  if (image.size() > program.capacity) {
    if (program.memory)
      driver.memFree(program.memory);
    program.memory = 0;
    program.capacity = 0;
    if (driver.memAlloc(&program.memory, image.size()) != 0)
      return refuse("the GPU has no memory for a list of " +
                    std::to_string(image.size()) + " bytes");
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
      return refuse("the driver does not copy its list to the GPU");
  return true;
}

CudaResult CudaPersistent::start(const CudaProgram &program,
                                 CudaHandle stream) const {
  const CudaRun &run = program.runs.front();
  std::array<uint64_t, 5> words = wordsOf(program, run);
  void *params[] = {&words[0], &words[1], &words[2], &words[3], &words[4]};
  return driver.launchCooperative(kernels[run.kernel], run.blocks, 1, 1,
                                  run.threads, 1, 1, run.sharedBytes, stream,
                                  params);
}

void CudaPersistent::destroy(CudaProgram &program) const {
  if (program.memory)
    driver.memFree(program.memory);
  program = CudaProgram();
}

} // namespace attune::runtime
