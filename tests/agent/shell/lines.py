"""Commands that rules do not cover, or not up to the host, though most programs in them have rules (see `conftest`)."""

# At no level: they run something without a rule, or cannot be read.
NEVER = r"""
rm -rf /
$x ls
ls; rm x
ls $(rm x)
ls -l2>&1 a
sort -o2>&1 x
bash -c 'rm x'
eval ls
echo 'rm x' | sh
ls() { rm x; }; ls
echo $((a[$(id)]))
[[ a[$(id)] -eq 1 ]]
sudo ls
./ls
command cd .git; echo x > config
jobs -x rm a
cat $'\x2fproc/1/environ'
export PATH=.; ls
declare PATH=.; ls
BASH_ENV=x bash -c ls
sed "1p
w x" a
printf -v 'a[$(id)]' x
printf -- -v 'a[$(id)]' x
test -v 'a[$(id)]'
[ -v 'a[$(id)]' ]
[[ -v a[$(id)] ]]
[[ 'a[$(id)]' -eq 0 ]]
[[ $x -gt 1 ]]
[ "$x" "$y" ]
let 'a[$(id)]=1'
(( a[$(id)] ))
echo $(( x ))
echo $[ x ]
x[$(id)]=1
unset 'a[$(id)]'
read 'a[$(id)]'
mapfile -C rm a
echo ${x@P}
echo ${x:$(id)}
echo ${!x}
echo ${x:=$(rm x)}
echo "${x:-$(rm x)}"
echo `rm x`
echo "`rm x`"
cat <(rm x)
ls > >(rm x)
ls >(rm x)
ls | sh
ls | bash
bash x.sh
bash
sh -s
. ./x
source x
trap 'rm x' EXIT
alias ls=rm
enable -f x y
hash -p /tmp/x ls
shopt -s expand_aliases
set -o posix
exec rm x
exec ls
eval "rm x"
builtin eval rm
command eval rm
\rm x
"rm" x
r''m x
r\m x
$'rm' x
/bin/rm x
~/x
r{m,x}
{rm,x}
$(echo rm) x
`echo rm` x
${x:-rm} y
if rm x; then ls; fi
while rm x; do ls; done
for i in $(rm x); do ls; done
case x in x) rm y;; esac
f() { rm x; }; f
function f { rm x; }
coproc rm x
time rm x
! rm x
(rm x)
{ rm x; }
((ls))
rm x &
ls & rm x
ls && rm x
ls || rm x
ls |& rm x
busybox rm x
sudo rm x
ls <> x
ls {fd}> x
cd .git && echo x > config
cd .git; ls > hooks
cd $x && ls > y
cd - && ls
cd src || cd ..; ls > ../../x
for i in 1 2; do cd ..; ls > x; done
pushd ..; ls > x
LC_ALL=zh_CN.GB18030 bash -c 'ls'
TZ=$(rm x) ls
bash --version -c 'rm x'
kill 1
ulimit -n 1
umask 0
history -c
fc -s
complete -C rm x
bind -x '"a":rm'
readarray -C rm -c 1 a
time -o x ls
time cd ..; ls > x
ls '#'; rm x
echo 'a'\''b; rm x'; rm y
echo "$(echo ")"; rm x)"
echo $((1)); rm x
echo $( (rm x) )
echo $((rm x); ls)
bash -c "rm x" -c ls
bash -ec 'rm x'
bash --rcfile x -c ls
sh -c '$0' rm
bash -c "$(cat x)"
bash -c 'eval "$1"' _ 'rm x'
echo $(bash -c 'rm x')
echo "$(echo "$(rm x)")"
echo ${x/a/$(rm x)}
echo ${x[$(rm x)]}
x=$(rm y) ls
x=$(rm y)
x+=y ls
x=(a $(rm y))
ls >$(rm x)
cat <<< $(rm x)
cat <<< "$(rm x)"
[ -f $(rm x) ]
[ "$(rm x)" ]
[[ -f $(rm x) ]]
[[ a =~ $(rm x) ]]
case $(rm x) in a) ls;; esac
for x in a; do rm $x; done
for x in a; do $x; done
while ls; do rm x; done
until rm x; do ls; done
if ls; then :; elif rm x; then :; fi
if ls; then :; else rm x; fi
ls || { rm x; }
{ ls; } | rm x
( ls ) && ( rm x )
ls & rm x & ls
! { rm x; }
time { rm x; }
select x in a; do rm $x; done
function ls() { rm x; }; ls
ls () ( rm x ); ls
rm() { ls; }; rm
unset -f ls
unset GIT_CONFIG_COUNT; git diff
readonly x=1
local x=1
typeset -i x='a[$(id)]'
declare -n r=PATH; r=.; ls
getopts ab x
exec 3<>/dev/tcp/a/1; cat <&3
exec > x
stat --printf=%n x; rm y
which -a ls; rm y
test -f x -a -v 'a[$(id)]'
printf "$x" y
sort x -o2>&1
sh -c 'ls'
command ls
REPLY=ls; read <<< rm; $REPLY x
FUNCNAME=ls; $FUNCNAME rm x
{ A=ls; } < missing; $A rm x
(A=ls); $A rm x
echo $((1/0)); A=ls
ls > a b
time
time ls
if ls; then  fi
if ls; then ls; else  fi
for i in a; do  done
{  }
ls | ! ls
ls | ! ls > x | ls
time -p ls
! time ls
time cd src; ls
[ -f x ] && ls
printf %s x
printf %n PATH
read x
wait -p PATH
command -v ls
type ls
test -f x
set -k; ls A=b
set -x; ls
set -a
set -- a b
set
hash -r
export
bash -c ls
echo ls | sh
ls | bash -s
cd $x; ls
cd src/*; ls
c\d ..; bash
ls | cd ..; bash
src/../ls
nothing-here x
"ls -l"
"" x
""".splitlines()[1:]

# In a sandbox with a network at most: files are written or read by the line itself, words are made while it runs.
NETWORK = r"""
cat /proc/*/environ
ls > /etc/passwd
ls > .git/config
grep -r x .*
cat .*/../x
cat {/proc/1/environ,x}
cat {{},/proc/1/environ}
find / -exec cat "$x" \;
xargs -I{} cat {} < README.md
xargs cat < README.md
rg x *
python3 < x
ls > /tmp/x
ls > ../x
ls > ~/x
ls >& x
ls &> ../x
ls 3> ../x
ls > .GIT/config
ls > src/.git
ls > .git
cd ..; ls > x
cat < /proc/1/environ
cat /dev/stdin/../../../../proc/1/environ < src
ls 2>&1 >../x
ls >x >../y
ls > src/../../x
ls >| ../x
ls &>> ../x
ls >&../x
ls 2>../x
ls > "../x"
ls > '../x'
ls > ..\/x
ls > $HOME/x
cat l*
sort *.md
rg x *.md
wc -l */*/*
wc --files0-from=/proc/1/env*
grep -n x -f*
cat */etc/hosts
cat s*/*/../../x
cat a* b* c* d* e* f* g* h* i* j* k* m* n* p* q* r* s* t* u* v* w* x*
find $x -exec ls {} +
echo {1..99999}
echo {a,b}{a,b}{a,b}
env $x ls
ls a=~/x
ls --x=~/y:~/z
ls > "$HOME/x"
cat <<< $x
ls "$x"
ls ${x:-y}
ls $((1 + 2))
ls ~root
ls {1..3}
ls [ab]
echo $(ls)
diff <(ls) <(ls src)
wc -l src/*.py
ls $_
ls $?
""".splitlines()[1:]

# In one without a network at most: variables change what runs, and the shell itself may connect to a host.
WORK = r"""
LD_PRELOAD=x ls
cat < /dev/tcp/1.2.3.4/80
PATH=. ls
PATH=.; ls
IFS=x; ls
GIT_PAGER=rm git log
for PATH in .; do ls; done
ls >> $x
cat < /dev/tcp/a/1
ls > /dev/tcp/a/1
ls > /dev/sda
LD_PRELOAD=x; ls
x=1 ls
LANG=zh_CN.GBK ls
cat < /dev/fd/3
ls > ~root/x
for d in */; do cat "$d/etc/hosts"; done
x=$y; cat $x
PATH=src ls
IFS=/; cat $HOME/x
HOME=/; cat ~/x
CDPATH=/ cd src; ls
for x in a; do ls; done
x=1 PATH=. ls
cat README.md >& $x
TZ=$x ls
LANG=$x ls
LC_ALL=C.GB18030 ls
""".splitlines()[1:]
