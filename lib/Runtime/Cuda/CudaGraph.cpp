//===- CudaGraph.cpp - Many launches handed over at once ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaGraph.h"

#include "../Mesh/Nccl.h"

#include <cstring>
#include <utility>

namespace attune::runtime {

/// Fewer launches than this are not worth a graph.
static constexpr size_t kLeastNodes = 4;

void CudaLaunches::add(int64_t kernel, const unsigned (&sizes)[6],
                       unsigned shared, const uint64_t *arguments,
                       int64_t count, const CudaInstructions &instructions) {
  Launch launch = {};
  launch.kernel = kernel;
  std::memcpy(launch.sizes, sizes, sizeof(sizes));
  launch.shared = shared;
  launch.firstWord = words.size();
  launch.numWords = static_cast<size_t>(count);
  launch.instructions = instructions;
  if (!launches.empty())
    launch.firstAccess =
        launches.back().firstAccess + launches.back().numAccesses;
  launch.numAccesses = accesses.size() - launch.firstAccess;
  launches.push_back(launch);
  words.insert(words.end(), arguments, arguments + count);
}

const CudaInstruction *CudaLaunches::Launch::in(int64_t persistent) const {
  for (const CudaInstruction &one : instructions)
    if (one.kernel >= 0 && one.kernel == persistent)
      return &one;
  return nullptr;
}

void CudaLaunches::exchange(Exchange kind, uint64_t from, uint64_t to,
                            uint64_t count) {
  const uint64_t arguments[] = {from, to, count};
  add(kind, {}, 0, arguments, 3);
  ++numExchanges;
}

void CudaLaunches::addAgain(const CudaLaunches &other, size_t i) {
  const Launch &launch = other.launches[i];
  add(launch.kernel, launch.sizes, launch.shared,
      other.words.data() + launch.firstWord,
      static_cast<int64_t>(launch.numWords));
  numExchanges += launch.isExchange();
}

void CudaLaunches::dropAccesses() {
  accesses.resize(launches.empty() ? 0
                                   : launches.back().firstAccess +
                                         launches.back().numAccesses);
}

void CudaLaunches::clear() {
  numExchanges = 0;
  launches.clear();
  words.clear();
  accesses.clear();
}

/// The same kernel has the same number of words, so both lie at the same place.
static bool sameLaunch(const CudaLaunches &a, const CudaLaunches &b, size_t i) {
  const CudaLaunches::Launch &x = a.launches[i], &y = b.launches[i];
  return x.shared == y.shared &&
         std::memcmp(x.sizes, y.sizes, sizeof(x.sizes)) == 0 &&
         x.numWords == y.numWords &&
         std::memcmp(a.words.data() + x.firstWord, b.words.data() + y.firstWord,
                     x.numWords * sizeof(uint64_t)) == 0;
}

/// An exchange in a graph stays what it was.
static bool sameKernels(const CudaLaunches &a, const CudaLaunches &b) {
  if (a.launches.size() != b.launches.size())
    return false;
  for (size_t i = 0; i < a.launches.size(); ++i)
    if (a.launches[i].kernel != b.launches[i].kernel ||
        (a.launches[i].isExchange() && !sameLaunch(a, b, i)))
      return false;
  return true;
}

void CudaGraphs::clear() {
  for (Section &section : sections)
    destroy(section);
  sections.clear();
}

void CudaGraphs::begin(const void *next) {
  entry = next;
  number = 0;
}

CudaGraphs::Section &CudaGraphs::section() {
  unsigned wanted = number++;
  for (Section &section : sections)
    if (section.entry == entry && section.number == wanted)
      return section;
  Section fresh;
  fresh.entry = entry;
  fresh.number = wanted;
  sections.push_back(std::move(fresh));
  return sections.back();
}

CudaKernelNode CudaGraphs::describe(const CudaLaunches &work, size_t i) {
  const CudaLaunches::Launch &launch = work.launches[i];
  params.resize(launch.numWords + 1);
  for (size_t word = 0; word < launch.numWords; ++word)
    params[word] = const_cast<uint64_t *>(&work.words[launch.firstWord + word]);
  CudaKernelNode node = {};
  node.function = kernels[launch.kernel];
  std::memcpy(node.sizes, launch.sizes, sizeof(node.sizes));
  node.shared = launch.shared;
  node.params = params.data();
  return node;
}

CudaResult CudaGraphs::launch(const CudaKernelNode &node, CudaHandle stream,
                              bool early) {
  const unsigned *s = node.sizes;
  if (!early || !driver.launchKernelEx)
    return driver.launchKernel(node.function, s[0], s[1], s[2], s[3], s[4],
                               s[5], node.shared, stream, node.params, nullptr);
  CudaLaunchAttribute attribute = kProgrammaticLaunch;
  CudaLaunchConfig config = {
      {s[0], s[1], s[2], s[3], s[4], s[5]}, node.shared, stream, &attribute, 1};
  return driver.launchKernelEx(&config, node.function, node.params, nullptr);
}

/// Streams that are captured know only the newer call.
CudaResult CudaGraphs::launchTogether(const CudaKernelNode &node,
                                      CudaHandle stream) {
  const unsigned *s = node.sizes;
  if (!capturing)
    return driver.launchCooperative(node.function, s[0], s[1], s[2], s[3], s[4],
                                    s[5], node.shared, stream, node.params);
  if (!driver.launchKernelEx)
    return CudaNotSupported;
  CudaLaunchAttribute attribute = kCooperativeLaunch;
  CudaLaunchConfig config = {
      {s[0], s[1], s[2], s[3], s[4], s[5]}, node.shared, stream, &attribute, 1};
  return driver.launchKernelEx(&config, node.function, node.params, nullptr);
}

CudaResult CudaGraphs::startOne(const CudaLaunches &work, size_t i,
                                CudaHandle stream, bool early) {
  const CudaLaunches::Launch &one = work.launches[i];
  if (one.together)
    return launchTogether(describe(work, i), stream);
  if (!one.isExchange())
    return launch(describe(work, i), stream, early);
  const uint64_t *words = &work.words[one.firstWord];
  auto *from = reinterpret_cast<const void *>(words[0]);
  auto *to = reinterpret_cast<void *>(words[1]);
  bool done = one.kernel == CudaLaunches::Sum
                  ? ranks->allReduce(from, to, words[2], stream)
                  : ranks->allGather(
                        from, to, words[2],
                        one.kernel == CudaLaunches::GatherPositions, stream);
  return done ? 0 : CudaExchangeFailed;
}

CudaResult CudaGraphs::startEach(const CudaLaunches &work, CudaHandle stream,
                                 int64_t &failed) {
  for (size_t i = 0; i < work.launches.size(); ++i) {
    // NCCL does not say when the next kernel may start.
    bool early = overlap && (i == 0 || !work.launches[i - 1].isExchange());
    CudaResult result = startOne(work, i, stream, early);
    if (result != 0) {
      failed = work.launches[i].kernel;
      return result;
    }
  }
  return 0;
}

CudaResult CudaGraphs::start(const CudaLaunches &work, CudaHandle stream,
                             int64_t &failed) {
  failed = -1;
  bool worth = usable && driver.hasGraphs() && entry &&
               work.launches.size() >= kLeastNodes;
  if (work.exchanges())
    return startTogether(work, stream, worth, failed);
  if (!worth)
    return startEach(work, stream, failed);
  Section &here = section();
  if (persistent.takes(work) && rewrite(here, work, stream))
    return persistent.start(here.program, stream);
  persistent.destroy(here.program);
  bool again = sameKernels(here.last, work);
  bool made =
      again && (here.executable ? update(here, work) : build(here, work));
  if (!made) {
    destroy(here);
    // A graph that failed here would fail at every step.
    usable = !again;
  }
  here.last = work;
  if (made)
    return driver.graphLaunch(here.executable, stream);
  return startEach(work, stream, failed);
}

const CudaLaunches &CudaGraphs::joinRuns(Section &section,
                                         const CudaLaunches &work,
                                         CudaHandle stream) {
  if (persistent.join(section.program, work, section.joined, stream))
    return section.joined;
  persistent.destroy(section.program);
  return work;
}

CudaResult CudaGraphs::startTogether(const CudaLaunches &given,
                                     CudaHandle stream, bool worth,
                                     int64_t &failed) {
  Section *here = nullptr;
  const CudaLaunches *list = &given;
  int offer = Each;
  if (worth && driver.canCapture() && ranks->canBeCaptured()) {
    here = &section();
    list = &joinRuns(*here, given, stream);
    if (sameKernels(here->last, *list))
      offer = here->executable && update(*here, *list) ? Graph : Capture;
  }
  const CudaLaunches &work = *list;
  int taken = agreed >= 0 ? agreed : ranks->least(offer);
  agreed = -1;
  if (here && taken != Graph)
    destroyGraph(*here);
  if (taken == Capture) {
    bool made = offer != Each && capture(*here, work, stream);
    // Without persistent kernels there may be a graph.
    bool joined = &work != &given;
    taken = ranks->least(made ? Graph : joined ? Capture : Each);
    // As above: it would fail at every step.
    usable = taken != Each;
    if (taken == Capture)
      persistent.refuse("the driver of a rank's GPU takes no such launches "
                        "into a graph");
    if (here && taken != Graph)
      destroyGraph(*here);
  }
  if (here)
    here->last = work;
  return taken == Graph ? driver.graphLaunch(here->executable, stream)
                        : startEach(work, stream, failed);
}

bool CudaGraphs::agreeOnPrepared() {
  for (const Section &section : sections)
    if (section.entry == entry && section.last.exchanges()) {
      agreed = ranks->least(Graph);
      if (agreed != Graph)
        return false;
      agreed = -1;
    }
  return true;
}

bool CudaGraphs::hasGraph(const void *entry) const {
  // Calls that wait for the device in between have other sections.
  size_t sectionsOfEntry = 0;
  bool made = false;
  for (const Section &section : sections)
    if (section.entry == entry) {
      ++sectionsOfEntry;
      made |= section.isReady();
    }
  return usable && made && sectionsOfEntry == 1;
}

bool CudaGraphs::prepare(const CudaLaunches &work, CudaHandle stream) {
  for (Section &section : sections) {
    if (section.entry != entry)
      continue;
    bool isWhole = section.program.isWhole;
    const CudaLaunches &list =
        work.exchanges() ? joinRuns(section, work, stream) : work;
    if (!sameKernels(section.last, list))
      continue;
    if (isWhole ? persistent.takes(work) && rewrite(section, work, stream)
                : section.executable && update(section, list)) {
      section.last = list;
      return true;
    }
    destroy(section);
  }
  return false;
}

CudaResult CudaGraphs::startPrepared(CudaHandle stream) {
  Section &here = section();
  return here.program.isWhole ? persistent.start(here.program, stream)
                              : driver.graphLaunch(here.executable, stream);
}

bool CudaGraphs::rewrite(Section &section, const CudaLaunches &work,
                         CudaHandle stream) {
  if (!persistent.write(section.program, work, stream)) {
    persistent.destroy(section.program);
    return false;
  }
  section.last = work;
  return true;
}

/// The nodes form a chain: a stream would have run them one after the other.
bool CudaGraphs::build(Section &section, const CudaLaunches &work) {
  if (driver.graphCreate(&section.graph, 0) != 0)
    return false;
  for (size_t i = 0; i < work.launches.size(); ++i) {
    CudaKernelNode params = describe(work, i);
    CudaHandle node = nullptr, before = i ? section.nodes.back() : nullptr;
    bool early = overlap && driver.graphAddDependencies && before;
    if (driver.graphAddKernelNode(&node, section.graph,
                                  early ? nullptr : &before, before && !early,
                                  &params) != 0)
      return false;
    section.nodes.push_back(node);
    if (early && driver.graphAddDependencies(section.graph, &before, &node,
                                             &kProgrammaticEdge, 1) != 0)
      return false;
  }
  return driver.graphInstantiate(&section.executable, section.graph, 0) == 0;
}

bool CudaGraphs::capture(Section &section, const CudaLaunches &work,
                         CudaHandle stream) {
  // Other threads, as NCCL's, may do what they like meanwhile.
  constexpr int ofThisThread = 1;
  if (driver.streamBeginCapture(stream, ofThisThread) != 0)
    return false;
  bool good = true;
  capturing = true;
  for (size_t i = 0; i < work.launches.size() && good; ++i) {
    bool exchange = work.launches[i].isExchange();
    bool early = overlap && i > 0 && !work.launches[i - 1].isExchange();
    good = startOne(work, i, stream, early) == 0;
    CudaHandle node = nullptr;
    if (good && !exchange) {
      int status = 0;
      const CudaHandle *last = nullptr;
      size_t count = 0;
      good = driver.streamGetCaptureInfo(stream, &status, nullptr, nullptr,
                                         &last, &count) == 0 &&
             count == 1;
      node = good ? *last : nullptr;
    }
    section.nodes.push_back(node);
  }
  capturing = false;
  // Whatever happened: the stream must not stay as it is.
  good &= driver.streamEndCapture(stream, &section.graph) == 0;
  return good &&
         driver.graphInstantiate(&section.executable, section.graph, 0) == 0;
}

bool CudaGraphs::update(Section &section, const CudaLaunches &work) {
  for (size_t i = 0; i < work.launches.size(); ++i) {
    if (sameLaunch(section.last, work, i))
      continue;
    CudaKernelNode params = describe(work, i);
    if (driver.graphExecSetParams(section.executable, section.nodes[i],
                                  &params) != 0)
      return false;
  }
  return true;
}

void CudaGraphs::destroyGraph(Section &section) {
  if (section.executable)
    driver.graphExecDestroy(section.executable);
  if (section.graph)
    driver.graphDestroy(section.graph);
  section.graph = section.executable = nullptr;
  section.nodes.clear();
}

void CudaGraphs::destroy(Section &section) {
  destroyGraph(section);
  persistent.destroy(section.program);
}

} // namespace attune::runtime
