# complete.sh FILE WORD...: what bash would offer for the last word.
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
compopt() { :; } # there is no line to complete
_attune
echo "${COMPREPLY[@]}"
