# What zsh proposes: zsh -f complete.zsh FPATH OUTPUT TYPED. It types into an interactive zsh and presses Tab; proposals go to OUTPUT.
zmodload zsh/zpty
cat >$2.setup <<END
PROMPT= fpath=($1 \$fpath)
autoload -Uz compinit && compinit -u -D
# Every proposal passes through this builtin; with -O, -A or -D it only fills an array.
compadd() {
  if [[ \${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
    local -a hits
    builtin compadd -A hits "\$@"
    print -rl -- \$hits >>$2
  fi
  builtin compadd "\$@"
}
# The line editor is ready: what is typed from now on is not lost.
zle-line-init() { print RE''ADY }
zle -N zle-line-init
END
zpty shell 'TERM=dumb zsh -fi'
zpty -w shell "source $2.setup"
zpty -r -m shell seen '*READY*'
zpty -w -n shell "$3"$'\t'$'\x15exit\n'
while zpty -r shell seen; do :; done
