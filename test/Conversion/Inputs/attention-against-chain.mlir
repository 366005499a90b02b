// One attention op and the chain it stands for, on the same numbers.
// attention_case.py fills in the words between at signs.

func.func @fused(%q: tensor<?x@HQ@x?x@DQK@x@ELEM@>, %k: tensor<?x@HKV@x?x@DQK@x@STORED@>, %v: tensor<?x@HKV@x?x@DV@x@STORED@>,
                 %mask: tensor<?x@MASKHEADS@x@MASKROWS@x?xi1>, %bias: tensor<1x@HQ@x?x?xf32>, %slopes: tensor<@HQ@xf32>, %sinks: tensor<@HQ@xf32>,
                 %diagonals: tensor<@HQ@x?xf32>, %lengths: tensor<?xi64>, %blocks: tensor<?x@BLOCKHEADS@x?x?xi1>)
    -> (tensor<?x@HQ@x?x@DV@x@ELEM@>, tensor<?x@HQ@x?xf32>) {
  %y, %lse = attune.attention %q, %k, %v scale @SCALE@ @OPERANDS@ @SINKS@ @ATTRIBUTES@
    : tensor<?x@HQ@x?x@DQK@x@ELEM@>, tensor<?x@HKV@x?x@DQK@x@STORED@>, tensor<?x@HKV@x?x@DV@x@STORED@> -> tensor<?x@HQ@x?x@DV@x@ELEM@> lse tensor<?x@HQ@x?xf32>
  return %y, %lse : tensor<?x@HQ@x?x@DV@x@ELEM@>, tensor<?x@HQ@x?xf32>
}

func.func @chain(%q: tensor<?x@HQ@x?x@DQK@x@ELEM@>, %k: tensor<?x@HKV@x?x@DQK@x@STORED@>, %v: tensor<?x@HKV@x?x@DV@x@STORED@>,
                 %mask: tensor<?x@MASKHEADS@x@MASKROWS@x?xi1>, %bias: tensor<1x@HQ@x?x?xf32>, %slopes: tensor<@HQ@xf32>, %sinks: tensor<@HQ@xf32>,
                 %diagonals: tensor<@HQ@x?xf32>, %lengths: tensor<?xi64>, %blocks: tensor<?x@BLOCKHEADS@x?x?xi1>)
    -> (tensor<?x@HQ@x?x@DV@x@ELEM@>, tensor<?x@HQ@x?xf32>) {
  %e = attune.similarity %q, %k scale @SCALE@ : tensor<?x@HQ@x?x@DQK@x@ELEM@>, tensor<?x@HKV@x?x@DQK@x@STORED@> -> tensor<?x@HQ@x?x?xf32>
  %f = attune.mask_scores %e @OPERANDS@ @ATTRIBUTES@ : tensor<?x@HQ@x?x?xf32>
  %lse = attune.log_sum_exp %f @SINKS@ : tensor<?x@HQ@x?x?xf32> -> tensor<?x@HQ@x?xf32>
  %a = attune.softmax %f @SINKS@ : tensor<?x@HQ@x?x?xf32>
  %y = attune.weighted_sum %a, %v : tensor<?x@HQ@x?x?xf32>, tensor<?x@HKV@x?x@DV@x@STORED@> -> tensor<?x@HQ@x?x@DV@x@ELEM@>
  return %y, %lse : tensor<?x@HQ@x?x@DV@x@ELEM@>, tensor<?x@HQ@x?xf32>
}

// Numbers between -1 and 1 that look random and are the same every time.
func.func private @number(%b: index, %h: index, %t: index, %d: index, %seed: index) -> f32 {
  %c31 = arith.constant 31 : index
  %c37 = arith.constant 37 : index
  %c41 = arith.constant 41 : index
  %0 = arith.muli %b, %c31 : index
  %1 = arith.addi %0, %h : index
  %2 = arith.muli %1, %c37 : index
  %3 = arith.addi %2, %t : index
  %4 = arith.muli %3, %c41 : index
  %5 = arith.addi %4, %d : index
  %6 = arith.addi %5, %seed : index
  %7 = arith.index_cast %6 : index to i32
  %m = arith.constant -1640531535 : i32
  %s = arith.constant 15 : i32
  %8 = arith.muli %7, %m : i32
  %9 = arith.shrui %8, %s : i32
  %10 = arith.xori %8, %9 : i32
  %11 = arith.muli %10, %m : i32
  %12 = arith.sitofp %11 : i32 to f32
  %unit = arith.constant 4.656612873e-10 : f32
  %13 = arith.mulf %12, %unit : f32
  return %13 : f32
}

func.func @numbers_q(%b: index, %n: index) -> tensor<?x@HQ@x?x@DQK@x@ELEM@> {
  %seed = arith.constant 1 : index
  %x = tensor.generate %b, %n {
  ^bb0(%i: index, %h: index, %t: index, %d: index):
    %0 = func.call @number(%i, %h, %t, %d, %seed) : (index, index, index, index, index) -> f32
    %spread = arith.constant @SPREAD@ : f32
    %1 = arith.mulf %0, %spread : f32
    %2 = @NARROW@ %1 @NARROWTYPES@
    tensor.yield %2 : @ELEM@
  } : tensor<?x@HQ@x?x@DQK@x@ELEM@>
  return %x : tensor<?x@HQ@x?x@DQK@x@ELEM@>
}
func.func @numbers_k(%b: index, %n: index) -> tensor<?x@HKV@x?x@DQK@x@STORED@> {
  %seed = arith.constant 5000 : index
  %x = tensor.generate %b, %n {
  ^bb0(%i: index, %h: index, %t: index, %d: index):
    %0 = func.call @number(%i, %h, %t, %d, %seed) : (index, index, index, index, index) -> f32
    %spread = arith.constant @SPREAD@ : f32
    %1 = arith.mulf %0, %spread : f32
    %2 = @STORE@ %1 @STORETYPES@
    tensor.yield %2 : @STORED@
  } : tensor<?x@HKV@x?x@DQK@x@STORED@>
  return %x : tensor<?x@HKV@x?x@DQK@x@STORED@>
}
func.func @numbers_v(%b: index, %n: index) -> tensor<?x@HKV@x?x@DV@x@STORED@> {
  %seed = arith.constant 9000 : index
  %x = tensor.generate %b, %n {
  ^bb0(%i: index, %h: index, %t: index, %d: index):
    %0 = func.call @number(%i, %h, %t, %d, %seed) : (index, index, index, index, index) -> f32
    %1 = @STORE@ %0 @STORETYPES@
    tensor.yield %1 : @STORED@
  } : tensor<?x@HKV@x?x@DV@x@STORED@>
  return %x : tensor<?x@HKV@x?x@DV@x@STORED@>
}

func.func @distance(%x: f32, %y: f32) -> f32 {
  // Equal infinities are no distance apart.
  %same = arith.cmpf oeq, %x, %y : f32
  %zero = arith.constant 0.0 : f32
  %0 = arith.subf %x, %y : f32
  %1 = math.absf %0 : f32
  %2 = arith.select %same, %zero, %1 : f32
  return %2 : f32
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %batch = arith.constant @BATCH@ : index
  %queries = arith.constant @QUERIES@ : index
  %keys = arith.constant @KEYS@ : index
  %q = call @numbers_q(%batch, %queries) : (index, index) -> tensor<?x@HQ@x?x@DQK@x@ELEM@>
  %k = call @numbers_k(%batch, %keys) : (index, index) -> tensor<?x@HKV@x?x@DQK@x@STORED@>
  %v = call @numbers_v(%batch, %keys) : (index, index) -> tensor<?x@HKV@x?x@DV@x@STORED@>
  %maskfull = tensor.generate %batch, %queries, %keys {
  ^bb0(%b: index, %h: index, %m: index, %n: index):
    %seed = arith.constant 77 : index
    %c5 = arith.constant 5 : index
    %c3 = arith.constant 3 : index
    %0 = func.call @number(%b, %h, %m, %n, %seed) : (index, index, index, index, index) -> f32
    %1 = arith.cmpf olt, %0, %zero : f32
    // Every fifth row sees nothing.
    %2 = arith.remui %m, %c5 : index
    %3 = arith.cmpi ne, %2, %c3 : index
    %4 = arith.andi %1, %3 : i1
    tensor.yield %4 : i1
  } : tensor<?x@MASKHEADS@x?x?xi1>
  %mask = tensor.extract_slice %maskfull[0, 0, 0, 0] [%batch, @MASKHEADS@, @MASKSIZE@, %keys] [1, 1, 1, 1]
    : tensor<?x@MASKHEADS@x?x?xi1> to tensor<?x@MASKHEADS@x@MASKROWS@x?xi1>
  %bias = tensor.generate %queries, %keys {
  ^bb0(%b: index, %h: index, %m: index, %n: index):
    %seed = arith.constant 99 : index
    %0 = func.call @number(%b, %h, %m, %n, %seed) : (index, index, index, index, index) -> f32
    tensor.yield %0 : f32
  } : tensor<1x@HQ@x?x?xf32>
  %slopes = tensor.generate {
  ^bb0(%h: index):
    %0 = func.call @number(%c0, %h, %c0, %c0, %c0) : (index, index, index, index, index) -> f32
    %1 = math.absf %0 : f32
    tensor.yield %1 : f32
  } : tensor<@HQ@xf32>
  %c1 = arith.constant 1 : index
  %sum = arith.addi %queries, %keys : index
  %count = arith.subi %sum, %c1 : index
  %diagonals = tensor.generate %count {
  ^bb0(%h: index, %n: index):
    %seed = arith.constant 55 : index
    %0 = func.call @number(%c0, %h, %n, %c0, %seed) : (index, index, index, index, index) -> f32
    tensor.yield %0 : f32
  } : tensor<@HQ@x?xf32>
  // More than all keys, half of them, none, ...
  %lengths = tensor.generate %batch {
  ^bb0(%b: index):
    %half = arith.divui %keys, %c2 : index
    %step = arith.addi %half, %c2 : index
    %off = arith.muli %b, %step : index
    %most = arith.addi %keys, %c2 : index
    %0 = arith.subi %most, %off : index
    %1 = arith.index_cast %0 : index to i64
    tensor.yield %1 : i64
  } : tensor<?xi64>
  %rows = arith.constant @BLOCKROWS@ : index
  %columns = arith.constant @BLOCKCOLUMNS@ : index
  %blockrows = arith.ceildivui %queries, %rows : index
  %blockcolumns = arith.ceildivui %keys, %columns : index
  %blocks = tensor.generate %batch, %blockrows, %blockcolumns {
  ^bb0(%b: index, %h: index, %m: index, %n: index):
    %seed = arith.constant 33 : index
    %0 = func.call @number(%b, %h, %m, %n, %seed) : (index, index, index, index, index) -> f32
    %1 = arith.cmpf olt, %0, %zero : f32
    tensor.yield %1 : i1
  } : tensor<?x@BLOCKHEADS@x?x?xi1>
  %sinks = tensor.generate {
  ^bb0(%h: index):
    %0 = func.call @number(%c0, %h, %c2, %c2, %c2) : (index, index, index, index, index) -> f32
    tensor.yield %0 : f32
  } : tensor<@HQ@xf32>

  %y:2 = call @fused(%q, %k, %v, %mask, %bias, %slopes, %sinks, %diagonals, %lengths, %blocks)
    : (tensor<?x@HQ@x?x@DQK@x@ELEM@>, tensor<?x@HKV@x?x@DQK@x@STORED@>, tensor<?x@HKV@x?x@DV@x@STORED@>, tensor<?x@MASKHEADS@x@MASKROWS@x?xi1>, tensor<1x@HQ@x?x?xf32>, tensor<@HQ@xf32>, tensor<@HQ@xf32>, tensor<@HQ@x?xf32>, tensor<?xi64>, tensor<?x@BLOCKHEADS@x?x?xi1>)
    -> (tensor<?x@HQ@x?x@DV@x@ELEM@>, tensor<?x@HQ@x?xf32>)
  %z:2 = call @chain(%q, %k, %v, %mask, %bias, %slopes, %sinks, %diagonals, %lengths, %blocks)
    : (tensor<?x@HQ@x?x@DQK@x@ELEM@>, tensor<?x@HKV@x?x@DQK@x@STORED@>, tensor<?x@HKV@x?x@DV@x@STORED@>, tensor<?x@MASKHEADS@x@MASKROWS@x?xi1>, tensor<1x@HQ@x?x?xf32>, tensor<@HQ@xf32>, tensor<@HQ@xf32>, tensor<@HQ@x?xf32>, tensor<?xi64>, tensor<?x@BLOCKHEADS@x?x?xi1>)
    -> (tensor<?x@HQ@x?x@DV@x@ELEM@>, tensor<?x@HQ@x?xf32>)

  %start = arith.constant dense<0.0> : tensor<f32>
  // The largest difference (NaN if there is one), and the largest value.
  %worst = linalg.generic {
      indexing_maps = [affine_map<(b, h, m, d) -> (b, h, m, d)>, affine_map<(b, h, m, d) -> (b, h, m, d)>, affine_map<(b, h, m, d) -> ()>],
      iterator_types = ["reduction", "reduction", "reduction", "reduction"]}
      ins(%y#0, %z#0 : tensor<?x@HQ@x?x@DV@x@ELEM@>, tensor<?x@HQ@x?x@DV@x@ELEM@>) outs(%start : tensor<f32>) {
  ^bb0(%a: @ELEM@, %b: @ELEM@, %so_far: f32):
    %0 = @WIDEN@ %a @WIDENTYPES@
    %1 = @WIDEN@ %b @WIDENTYPES@
    %2 = func.call @distance(%0, %1) : (f32, f32) -> f32
    %3 = arith.maximumf %2, %so_far : f32
    linalg.yield %3 : f32
  } -> tensor<f32>
  %worst_lse = linalg.generic {
      indexing_maps = [affine_map<(b, h, m) -> (b, h, m)>, affine_map<(b, h, m) -> (b, h, m)>, affine_map<(b, h, m) -> ()>],
      iterator_types = ["reduction", "reduction", "reduction"]}
      ins(%y#1, %z#1 : tensor<?x@HQ@x?xf32>, tensor<?x@HQ@x?xf32>) outs(%start : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %so_far: f32):
    %0 = func.call @distance(%a, %b) : (f32, f32) -> f32
    // Relative where the scores are large.
    %one = arith.constant 1.0 : f32
    %inf = arith.constant 0x7F800000 : f32
    %size = math.absf %b : f32
    %finite = arith.cmpf olt, %size, %inf : f32
    %1 = arith.select %finite, %size, %one : f32
    %2 = arith.maximumf %1, %one : f32
    %3 = arith.divf %0, %2 : f32
    %4 = arith.maximumf %3, %so_far : f32
    linalg.yield %4 : f32
  } -> tensor<f32>
  %largest = linalg.generic {
      indexing_maps = [affine_map<(b, h, m, d) -> (b, h, m, d)>, affine_map<(b, h, m, d) -> ()>],
      iterator_types = ["reduction", "reduction", "reduction", "reduction"]}
      ins(%z#0 : tensor<?x@HQ@x?x@DV@x@ELEM@>) outs(%start : tensor<f32>) {
  ^bb0(%a: @ELEM@, %so_far: f32):
    %0 = @WIDEN@ %a @WIDENTYPES@
    %1 = math.absf %0 : f32
    %2 = arith.maximumf %1, %so_far : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  %d0 = tensor.extract %worst[] : tensor<f32>
  %d1 = tensor.extract %worst_lse[] : tensor<f32>
  %d2 = tensor.extract %largest[] : tensor<f32>
  %tolerance = arith.constant @TOLERANCE@ : f32
  %some = arith.constant 0.05 : f32
  %ok0 = arith.cmpf ole, %d0, %tolerance : f32
  %ok1 = arith.cmpf ole, %d1, %tolerance : f32
  %ok2 = arith.cmpf ogt, %d2, %some : f32
  %ok3 = arith.andi %ok0, %ok1 : i1
  %ok4 = arith.andi %ok3, %ok2 : i1
  scf.if %ok4 {
    vector.print str "fused and chain agree\0A"
  } else {
    vector.print str "outputs differ by, log-sum-exp differs by, largest output\0A"
    vector.print %d0 : f32
    vector.print %d1 : f32
    vector.print %d2 : f32
  }
  return
}
