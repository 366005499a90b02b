//===- Beams.cpp - Beam search --------------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Beams.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

namespace {

struct Candidate {
  double score;
  int64_t beam, id;
};

/// A text that ended, by its score.
struct Finished {
  double score;
  std::vector<int64_t> ids;
};

class Search {
public:
  Search(Session &session, const BeamOptions &options,
         const std::vector<int64_t> &start)
      : session(session), options(options), beams(options.beams),
        ends(options.ends), start(start), rules(options.sampling), texts(beams),
        scores(beams, minusInfinity) {
    scores[0] = 0; // all beams are the same at first
  }

  /// Takes the logits of all beams a token further. `forced` is an id, or -1.
  bool extend(int64_t forced, const std::vector<int64_t> &banned, Error &error);
  /// Whether the search stops before its limit.
  bool isDone() const;
  std::vector<int64_t> best(bool &ended);
  /// The last token of each beam.
  const int64_t *lastIds() {
    last.clear();
    for (const std::vector<int64_t> &text : texts)
      last.push_back(text.back());
    return last.data();
  }

private:
  static constexpr double minusInfinity = -HUGE_VAL;
  bool isEnd(int64_t id) const {
    return std::find(ends.begin(), ends.end(), id) != ends.end();
  }
  bool collect(int64_t forced, const std::vector<int64_t> &banned,
               Error &error);
  void finish(double score, std::vector<int64_t> ids);
  double penalize(double score, size_t length) const {
    return score / std::pow(static_cast<double>(length), options.lengthPenalty);
  }

  Session &session;
  const BeamOptions &options;
  const int64_t beams;
  const std::vector<int64_t> &ends;
  const std::vector<int64_t> &start;
  ScoreRules rules;
  std::vector<double> row;      ///< log-probabilities after one beam
  std::vector<int64_t> history; ///< of that beam, from the start
  std::vector<std::vector<int64_t>> texts;
  std::vector<double> scores;
  std::vector<Candidate> candidates; ///< best first
  std::vector<Finished> finished;
  std::vector<int64_t> last;
};

bool better(const Candidate &a, const Candidate &b) {
  if (a.score != b.score)
    return a.score > b.score;
  return a.beam != b.beam ? a.beam < b.beam : a.id < b.id;
}

/// The best continuations: as many as beams and as each beam has ends.
bool Search::collect(int64_t forced, const std::vector<int64_t> &banned,
                     Error &error) {
  int64_t vocabulary = session.vocabulary();
  size_t wanted = std::max<size_t>(2, 1 + ends.size()) * size_t(beams);
  candidates.clear();
  const float *all = forced >= 0 ? nullptr : session.logits(error);
  if (forced < 0 && !all)
    return false;
  for (int64_t beam = 0; beam < beams; ++beam) {
    if (scores[beam] == minusInfinity)
      continue;
    if (forced >= 0) {
      candidates.push_back({scores[beam], beam, forced});
      continue;
    }
    const float *logits = all + beam * vocabulary;
    double largest = minusInfinity, sum = 0;
    for (int64_t id = 0; id < vocabulary; ++id) {
      if (!(logits[id] < HUGE_VALF))
        return error.set(ExitInternalError, "a logit is not a number");
      largest = std::max<double>(largest, logits[id]);
    }
    if (largest == minusInfinity)
      return error.set(ExitInternalError, "all logits are minus infinity");
    for (int64_t id = 0; id < vocabulary; ++id)
      sum += std::exp(logits[id] - largest);
    double shift = -largest - std::log(sum);
    row.assign(logits, logits + vocabulary);
    for (double &score : row)
      score += shift;
    history = start;
    history.insert(history.end(), texts[beam].begin(), texts[beam].end());
    rules.apply(row.data(), vocabulary, history, start.size(), banned);
    for (int64_t id = 0; id < vocabulary; ++id) {
      Candidate candidate = {row[id] + scores[beam], beam, id};
      if (candidate.score == minusInfinity)
        continue;
      if (candidates.size() == wanted) {
        if (!better(candidate, candidates.back()))
          continue;
        candidates.pop_back();
      }
      candidates.insert(std::upper_bound(candidates.begin(), candidates.end(),
                                         candidate, better),
                        candidate);
    }
  }
  return true;
}

void Search::finish(double score, std::vector<int64_t> ids) {
  Finished text = {penalize(score, ids.size()), std::move(ids)};
  auto place = std::find_if(
      finished.begin(), finished.end(),
      [&](const Finished &other) { return text.score > other.score; });
  finished.insert(place, std::move(text));
  if (static_cast<int64_t>(finished.size()) > beams)
    finished.pop_back();
}

bool Search::extend(int64_t forced, const std::vector<int64_t> &banned,
                    Error &error) {
  if (!collect(forced, banned, error))
    return false;
  std::vector<std::vector<int64_t>> next;
  std::vector<double> nextScores;
  std::vector<int64_t> rows;
  int64_t rank = 0;
  for (const Candidate &candidate : candidates) {
    std::vector<int64_t> text = texts[candidate.beam];
    text.push_back(candidate.id);
    if (isEnd(candidate.id)) {
      if (rank++ < beams)
        finish(candidate.score, std::move(text));
      continue;
    }
    ++rank;
    if (static_cast<int64_t>(next.size()) == beams)
      break;
    next.push_back(std::move(text));
    nextScores.push_back(candidate.score);
    rows.push_back(candidate.beam);
  }
  // Beams without a text of their own follow the first one and never win.
  while (!next.empty() && static_cast<int64_t>(next.size()) < beams) {
    next.push_back(next.front());
    nextScores.push_back(minusInfinity);
    rows.push_back(rows.front());
  }
  if (next.empty()) { // every continuation ended
    scores.assign(beams, minusInfinity);
    return true;
  }
  texts = std::move(next);
  scores = std::move(nextScores);
  return session.select(rows.data(), error);
}

bool Search::isDone() const {
  double open = *std::max_element(scores.begin(), scores.end());
  if (open == minusInfinity)
    return true;
  if (static_cast<int64_t>(finished.size()) < beams)
    return false;
  if (options.stopping == EarlyStopping::Yes)
    return true;
  size_t length = texts.front().size();
  if (options.stopping == EarlyStopping::Never && options.lengthPenalty > 0)
    length = static_cast<size_t>(options.limit);
  return finished.back().score >= penalize(open, length);
}

std::vector<int64_t> Search::best(bool &ended) {
  std::vector<int64_t> result;
  double highest = minusInfinity;
  ended = !finished.empty();
  if (ended) {
    highest = finished.front().score;
    result = finished.front().ids;
  }
  // At the limit open texts count, too, whatever ended.
  if (isDone() && static_cast<int64_t>(texts.front().size()) < options.limit)
    return result;
  for (int64_t beam = 0; beam < beams; ++beam) {
    double score = penalize(scores[beam], texts[beam].size());
    if (scores[beam] == minusInfinity || score <= highest)
      continue;
    highest = score;
    result = texts[beam];
    ended = false;
  }
  return result;
}

} // namespace

bool searchBeams(Session &session, const BeamOptions &options,
                 const std::vector<int64_t> &start, std::vector<int64_t> &best,
                 bool &ended, Error &error) {
  auto length = static_cast<int64_t>(start.size());
  std::vector<int64_t> ids;
  for (int64_t beam = 0; beam < options.beams; ++beam)
    ids.insert(ids.end(), start.begin(), start.end());
  if (!session.step(ids.data(), length, error))
    return false;
  Search search(session, options, start);
  std::vector<int64_t> first = options.suppress;
  first.insert(first.end(), options.beginSuppress.begin(),
               options.beginSuppress.end());
  for (int64_t count = 1;; ++count) {
    bool isForced = count == 1 && options.forced >= 0;
    bool isFirst = count == (options.forced >= 0 ? 2 : 1);
    if (!search.extend(isForced ? options.forced : -1,
                       isFirst ? first : options.suppress, error))
      return false;
    if (count == options.limit || search.isDone())
      break;
    if (!session.step(search.lastIds(), 1, error))
      return false;
  }
  best = search.best(ended);
  return true;
}

} // namespace attune::runtime
