# cmake -DOUT=FILE -DPAGES="A.md;B.md" -P EmbedDocs.cmake: reference pages as
# string literals, one after the other.
set(literals "")
foreach(page ${PAGES})
  file(READ ${page} text)
  string(APPEND literals "R\"attune_page(${text})attune_page\"\n")
endforeach()
file(WRITE ${OUT} "${literals}")
