// When tiles have become vectors, this sequence unrolls the loops that add up
// products by two, beyond what Attune does.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @after_threads(%model: !transform.any_op {transform.readonly}) {
    %products = transform.structured.match ops{["vector.fma"]} in %model
      : (!transform.any_op) -> !transform.any_op
    %loops = transform.get_parent_op %products {op_name = "scf.for", deduplicate, allow_empty_results}
      : (!transform.any_op) -> !transform.any_op
    transform.include @by_two failures(propagate) (%loops) : (!transform.any_op) -> ()
    transform.yield
  }
  transform.named_sequence private @by_two(%loops: !transform.any_op {transform.consumed}) {
    transform.loop.unroll %loops {factor = 2} : !transform.any_op
    transform.yield
  }
}
