# Completion of hermes-gateway-doctor for fish. Written by `make share`; do not edit.
complete -c hermes-gateway-doctor -w hermes-doctor
