// The source of the programs whose only purpose is to hold precompiled headers (CMakeLists.txt).
int main() { return 0; }
