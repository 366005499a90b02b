//===- GrammarProduct.cpp - Texts that several grammars have --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GrammarProduct.h"

#include "GrammarAutomaton.h"

#include <algorithm>

namespace attune::runtime {

namespace {

class Product {
public:
  Product(std::vector<Grammar> parts, int64_t least, int64_t most);

  /// `limit` is a number of characters, or -1. False: a text is longer.
  bool addTo(Grammar &grammar, Grammar::Rule rule, size_t &budget,
             int64_t limit, ProductResult &result);

private:
  static constexpr size_t mostNodes = 30000;
  /// So many steps of the parts cost as much as a node.
  static constexpr size_t stepsOfNode = 100;

  /// A step from one node to another; the bytes are those of a class.
  struct Edge {
    uint32_t from, to, byteClass;
  };

  void classifyBytes(const std::vector<Grammar> &parts);
  /// The number of a node: the states of all parts, then the number of
  /// characters so far, doubled, and whether a backslash came last.
  uint32_t numberOf(const std::vector<uint32_t> &node);
  bool findEdges(uint32_t from);
  bool isComplete(uint32_t node) const;
  bool isCharacter(uint32_t from, uint32_t byteClass) const;
  bool isWithin(int64_t limit, const std::vector<char> &isAlive) const;
  std::vector<char> findAlive() const;

  std::vector<GrammarAutomaton> automata;
  const int64_t least, most;
  std::vector<Grammar::ByteSet> classes;
  std::vector<unsigned char> firstBytes; ///< of each class
  size_t width;
  std::vector<uint32_t> nodes; ///< `width` numbers each
  HashIndex index;             ///< of nodes
  std::vector<Edge> edges;
  size_t numSteps = 0; ///< of the parts, not yet taken from the budget
};

} // namespace

Product::Product(std::vector<Grammar> parts, int64_t least, int64_t most)
    : least(least), most(most), width(parts.size() + 1) {
  classifyBytes(parts);
  automata.reserve(parts.size());
  for (Grammar &part : parts)
    automata.emplace_back(std::move(part), nullptr);
}

/// Bytes that nothing here tells apart are one class.
void Product::classifyBytes(const std::vector<Grammar> &parts) {
  Grammar::ByteSet following, backslash;
  for (size_t byte = 0x80; byte < 0xC0; ++byte)
    following.set(byte);
  backslash.set('\\');
  classes = {Grammar::ByteSet().set()};
  auto split = [&](const Grammar::ByteSet &set) {
    for (size_t i = classes.size(); i-- > 0;) {
      Grammar::ByteSet inside = classes[i] & set;
      if (inside.none() || inside == classes[i])
        continue;
      classes[i] &= ~set;
      classes.push_back(inside);
    }
  };
  split(following);
  split(backslash);
  for (const Grammar &part : parts)
    for (const Grammar::ByteSet &set : part.byteSets())
      split(set);
  for (const Grammar::ByteSet &set : classes) {
    size_t byte = 0;
    while (!set[byte])
      ++byte;
    firstBytes.push_back(static_cast<unsigned char>(byte));
  }
}

uint32_t Product::numberOf(const std::vector<uint32_t> &node) {
  uint64_t hash = 1;
  for (uint32_t value : node)
    hash = HashIndex::mix(hash, value);
  size_t count = nodes.size() / width;
  uint32_t number = index.find(hash, count, [&](uint32_t each) {
    return std::equal(node.begin(), node.end(), &nodes[each * width]);
  });
  if (number == count)
    nodes.insert(nodes.end(), node.begin(), node.end());
  return number;
}

/// Whether a character begins with these bytes there.
bool Product::isCharacter(uint32_t from, uint32_t byteClass) const {
  bool isEscaped = nodes[from * width + width - 1] & 1;
  return !isEscaped && (firstBytes[byteClass] & 0xC0) != 0x80;
}

/// False: there are too many ways.
bool Product::findEdges(uint32_t from) {
  bool isEscaped = nodes[from * width + width - 1] & 1;
  auto count = static_cast<int64_t>(nodes[from * width + width - 1] / 2);
  std::vector<uint32_t> to(width);
  for (uint32_t c = 0; c < classes.size(); ++c) {
    unsigned char byte = firstBytes[c];
    int64_t toCount = count + isCharacter(from, c);
    if (most >= 0 && toCount > most)
      continue;
    if (most < 0) // more need not be told apart
      toCount = std::min(toCount, least);
    bool isDead = false;
    for (size_t i = 0; i < automata.size() && !isDead; ++i) {
      to[i] = automata[i].next(nodes[from * width + i], byte);
      numSteps += automata[i].takeSteps();
      if (automata[i].isTooLarge())
        return false;
      isDead = to[i] == GrammarAutomaton::dead;
    }
    if (isDead)
      continue;
    to[width - 1] =
        static_cast<uint32_t>(2 * toCount + (!isEscaped && byte == '\\'));
    edges.push_back({from, numberOf(to), c});
  }
  return nodes.size() / width <= mostNodes;
}

bool Product::isComplete(uint32_t node) const {
  const uint32_t *values = &nodes[node * width];
  if (static_cast<int64_t>(values[width - 1] / 2) < least ||
      values[width - 1] & 1)
    return false;
  for (size_t i = 0; i < automata.size(); ++i)
    if (!automata[i].isComplete(values[i]))
      return false;
  return true;
}

/// The nodes that a whole text passes.
std::vector<char> Product::findAlive() const {
  size_t count = nodes.size() / width;
  // Edges by where they lead: those into n are at starts[n] and behind.
  std::vector<uint32_t> starts(count + 1), into(edges.size());
  for (const Edge &edge : edges)
    ++starts[edge.to + 1];
  for (size_t i = 0; i < count; ++i)
    starts[i + 1] += starts[i];
  std::vector<uint32_t> next(starts.begin(), starts.end() - 1);
  for (const Edge &edge : edges)
    into[next[edge.to]++] = edge.from;
  std::vector<char> isAlive(count);
  std::vector<uint32_t> work;
  auto meet = [&](uint32_t node) {
    if (!isAlive[node])
      work.push_back(node);
    isAlive[node] = true;
  };
  for (uint32_t node = 0; node < count; ++node)
    if (isComplete(node))
      meet(node);
  while (!work.empty()) {
    uint32_t node = work.back();
    work.pop_back();
    for (uint32_t i = starts[node]; i < starts[node + 1]; ++i)
      meet(into[i]);
  }
  return isAlive;
}

/// Whether no whole text has more characters; edges are in order.
bool Product::isWithin(int64_t limit, const std::vector<char> &isAlive) const {
  std::vector<uint32_t> open(isAlive.size()); // edges that were not followed
  std::vector<size_t> begins(isAlive.size() + 1);
  for (const Edge &edge : edges) {
    ++begins[edge.from + 1];
    open[edge.to] += isAlive[edge.from] && isAlive[edge.to];
  }
  for (size_t i = 0; i < isAlive.size(); ++i)
    begins[i + 1] += begins[i];
  std::vector<int64_t> lengths(isAlive.size());
  std::vector<uint32_t> work = {0};
  size_t numMet = 0;
  // What comes back to itself, the first node included, is never met.
  if (open[0] > 0)
    return false;
  while (!work.empty()) {
    uint32_t node = work.back();
    work.pop_back();
    ++numMet;
    if (lengths[node] > limit)
      return false;
    for (size_t i = begins[node]; i < begins[node + 1]; ++i) {
      const Edge &edge = edges[i];
      if (!isAlive[edge.to])
        continue;
      lengths[edge.to] = std::max(
          lengths[edge.to], lengths[node] + isCharacter(node, edge.byteClass));
      if (--open[edge.to] == 0)
        work.push_back(edge.to);
    }
  }
  return numMet == static_cast<size_t>(
                       std::count(isAlive.begin(), isAlive.end(), char(1)));
}

bool Product::addTo(Grammar &grammar, Grammar::Rule rule, size_t &budget,
                    int64_t limit, ProductResult &result) {
  result = ProductResult::TooLarge;
  std::vector<uint32_t> first;
  for (const GrammarAutomaton &automaton : automata) {
    if (automaton.isTooLarge())
      return true;
    first.push_back(automaton.start());
  }
  first.push_back(0);
  numberOf(first);
  for (uint32_t node = 0; node * width < nodes.size(); ++node) {
    if (budget == 0 || !findEdges(node))
      return true;
    budget -= std::min(budget, 1 + numSteps / stepsOfNode);
    numSteps = 0;
  }
  std::vector<char> isAlive = findAlive();
  if (!isAlive[0]) {
    result = ProductResult::NoText;
    return true;
  }
  // Edges between the same nodes become one: those of a node stand together.
  std::sort(edges.begin(), edges.end(), [](const Edge &a, const Edge &b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
  if (limit >= 0 && !isWithin(limit, isAlive))
    return false;
  auto isNew = [&](size_t i) {
    return i == 0 || edges[i - 1].from != edges[i].from ||
           edges[i - 1].to != edges[i].to;
  };
  // Others need room in the grammar, too.
  size_t size = isAlive.size();
  for (size_t i = 0; i < edges.size(); ++i)
    size += isNew(i) && isAlive[edges[i].to] ? 3 : 0;
  if (grammar.isTooLarge() ||
      size > (Grammar::mostElements - grammar.size()) / 4)
    return true;
  // A rule for each node: what may follow there.
  std::vector<Grammar::Rule> rules(isAlive.size());
  for (uint32_t node = 0; node < rules.size(); ++node) {
    rules[node] = node == 0 ? rule : isAlive[node] ? grammar.addRule() : 0;
    if (isComplete(node))
      grammar.addAlternative(rules[node], {});
  }
  Grammar::ByteSet bytes;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (isNew(i))
      bytes.reset();
    bytes |= classes[edges[i].byteClass];
    if (!isAlive[edges[i].to] || (i + 1 < edges.size() && !isNew(i + 1)))
      continue;
    Grammar::Sequence sequence;
    grammar.appendSet(sequence, bytes);
    grammar.appendRule(sequence, rules[edges[i].to]);
    grammar.addAlternative(rules[edges[i].from], std::move(sequence));
  }
  result = ProductResult::Done;
  return true;
}

ProductResult addProduct(Grammar &grammar, Grammar::Rule rule,
                         std::vector<Grammar> parts, int64_t least,
                         int64_t most, size_t &budget) {
  ProductResult result;
  // Where no text is longer, nothing has to be counted.
  if (most >= 0 &&
      Product(parts, least, -1).addTo(grammar, rule, budget, most, result))
    return result;
  Product(std::move(parts), least, most)
      .addTo(grammar, rule, budget, /*limit=*/-1, result);
  return result;
}

} // namespace attune::runtime
