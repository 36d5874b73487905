#!/bin/sh
# Verify a download: verify.sh --key=PUBLIC_KEY FILE...
# SHA256SUMS and SHA256SUMS.asc are in the folder of each file. The public key comes from another place than the files.
# Needs sha256sum, and gpgv or gpg. Exit code: 0 if every file is what the owner of the key released, 1 if not, 2 if it
# cannot be verified here.
set -eu
export LC_ALL=C
fail() {
  echo "verify.sh: $1" >&2
  exit "${2:-1}"
}
key=
case ${1:-} in --key=*) key=${1#--key=}; shift ;; esac
[ -n "$key" ] && [ $# -gt 0 ] || fail "usage: verify.sh --key=PUBLIC_KEY FILE..." 2
[ -r "$key" ] || fail "cannot read the key $key" 2
command -v sha256sum >/dev/null || fail "sha256sum is not installed" 2
verifier=$(command -v gpgv || command -v gpg) || fail "neither gpgv nor gpg is installed" 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Both programs need the key in binary form.
if grep -q '^-----BEGIN PGP PUBLIC KEY BLOCK-----' "$key"; then
  sed -n '/^-----BEGIN/,/^-----END/p' "$key" | sed -e '1,/^[[:space:]]*$/d' -e '/^=/d' -e '/^-----/d' | base64 -d >"$work/key.gpg" \
    || fail "$key is not a public key" 2
else
  cp "$key" "$work/key.gpg"
fi

signed() {
  sums=$1/SHA256SUMS
  [ -f "$sums" ] || fail "$sums is missing"
  [ -f "$sums.asc" ] || fail "$sums.asc is missing: these files are not signed"
  case $verifier in
    */gpgv) set -- ;;
    *) set -- --batch --no-default-keyring --trust-model=always --verify ;;
  esac
  code=0
  "$verifier" --homedir="$work" --keyring="$work/key.gpg" --status-fd=1 "$@" "$sums.asc" "$sums" >"$work/status" 2>/dev/null || code=$?
  state() { grep -q "^\[GNUPG:\] $1 " "$work/status"; }
  if state BADSIG; then fail "$sums was changed after it was signed"; fi
  if state EXPSIG; then fail "the signature of $sums has expired"; fi
  if state EXPKEYSIG; then fail "the key that signed $sums has expired"; fi
  if state REVKEYSIG; then fail "the key that signed $sums was revoked"; fi
  if state NO_PUBKEY; then fail "$sums is signed with another key than $key"; fi
  if [ $code -ne 0 ] || ! state GOODSIG || ! state VALIDSIG; then fail "$sums.asc is not a valid signature of $sums"; fi
}

for file in "$@"; do
  [ -f "$file" ] || fail "$file is missing"
  folder=$(dirname "$file")
  signed "$folder"
  listed=$(NAME=$(basename "$file") awk 'substr($0, 67) == ENVIRON["NAME"] { print substr($0, 1, 64) }' "$folder/SHA256SUMS")
  [ -n "$listed" ] || fail "$file is not in $folder/SHA256SUMS"
  computed=$(sha256sum <"$file")
  [ "$listed" = "${computed%% *}" ] || fail "$file was changed: its SHA-256 is not that in $folder/SHA256SUMS"
  echo "$file: verified"
done
