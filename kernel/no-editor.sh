#!/bin/sh
# Stands for every editor inside the kernel. Fails, and says how to pass the text instead.
cat >&2 <<'TEXT'
There is no editor here: nobody could type into it. Pass the text in the command instead:
  git commit -m TEXT · git commit --amend --no-edit · git tag -m TEXT · git merge --no-edit
  git rebase --continue:  GIT_EDITOR=true git rebase --continue
  git rebase -i:          GIT_SEQUENCE_EDITOR="sed -i ..." git rebase -i COMMIT, or use reset, cherry-pick, --fixup
  other programs:         write the file, then pass it (-f FILE, -F FILE, or on stdin)
TEXT
exit 1
