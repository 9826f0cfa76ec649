# Writes a header of phimap to OUT as it is installed: what it includes of the list HEADERS is in phimap/. An include of
# another header of phimap is an error, because that header would be missing where phimap is installed.
file(READ ${HEADER} TEXT)
foreach(INCLUDED ${HEADERS})
  cmake_path(GET INCLUDED FILENAME NAME)
  string(REPLACE "#include \"${INCLUDED}\"" "#include \"phimap/${NAME}\"" TEXT "${TEXT}")
endforeach()
if(TEXT MATCHES "#include \"((core|client|proto|server)/[^\"]*)\"")
  message(FATAL_ERROR "${HEADER} is installed and includes ${CMAKE_MATCH_1}, which is not (client/cpp/package/CMakeLists.txt)")
endif()
file(WRITE ${OUT} "${TEXT}")
