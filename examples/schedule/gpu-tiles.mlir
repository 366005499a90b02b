// The same for a GPU: what a block of threads computes, and how many slices of
// what it reads wait in shared memory.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @before_tiling(%model: !transform.any_op {transform.readonly}) {
    %rows = transform.param.constant 64 : i64 -> !transform.param<i64>
    %columns = transform.param.constant 128 : i64 -> !transform.param<i64>
    %products = transform.structured.match ops{["attune.linear", "attune.moe"]} in %model
      : (!transform.any_op) -> !transform.any_op
    transform.annotate %products "attune.tile_rows" = %rows : !transform.any_op, !transform.param<i64>
    transform.annotate %products "attune.tile_columns" = %columns : !transform.any_op, !transform.param<i64>

    %queries = transform.param.constant 32 : i64 -> !transform.param<i64>
    %keys = transform.param.constant 16 : i64 -> !transform.param<i64>
    %stages = transform.param.constant 3 : i64 -> !transform.param<i64>
    %attention = transform.structured.match ops{["attune.attention"]} in %model
      : (!transform.any_op) -> !transform.any_op
    transform.annotate %attention "attune.query_block" = %queries : !transform.any_op, !transform.param<i64>
    transform.annotate %attention "attune.key_block" = %keys : !transform.any_op, !transform.param<i64>
    transform.annotate %attention "attune.stages" = %stages : !transform.any_op, !transform.param<i64>
    transform.yield
  }
}
