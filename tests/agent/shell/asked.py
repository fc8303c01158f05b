"""Commands a person must be asked about: each tries to have something run, written or shown that nobody allowed."""

ASKED = r"""
rm -rf /
$x ls
ls; rm x
ls $(rm x)
cat /proc/1/environ
cat /proc/*/environ
LD_PRELOAD=x ls
ls > /etc/passwd
ls > .git/config
sort -o x y
ls -l2>&1 a
sort -o2>&1 x
find . -delete
find . -exec rm {} \;
git diff --output=x
bash -c 'rm x'
env -S 'rm x'
rg --pre=./x foo
eval ls
echo 'rm x' | sh
python3 -c 'import os'
python3
ls() { rm x; }; ls
echo $((a[$(id)]))
[[ a[$(id)] -eq 1 ]]
sudo ls
cat < /dev/tcp/1.2.3.4/80
uniq a b
./ls
command cd .git; echo x > config
jobs -x rm a
cat /proc/1/fd/3
cat /dev/fd/../../proc/1/environ
grep -r x .*
cat .*/../x
du --files0-from=/proc/1/environ
wc --files0-from=/proc/1/environ
cat $'\x2fproc/1/environ'
cat {/proc/1/environ,x}
cat {{},/proc/1/environ}
find / -exec cat {} \;
find . -exec sh -c 'rm $1' _ {} \;
find . -execdir cat {} \;
find / -exec cat "$x" \;
find . -okdir ls \;
find . -fprintf x y
find . -exec ls {} \; -delete
xargs -I{} cat {} < README.md
xargs cat < README.md
xargs rm
xargs -I% sh -c 'echo %'
xargs -a x rm
env -i git status
env -u GIT_CONFIG_COUNT git status
env FOO=1 ls
env PATH=. ls
PATH=. ls
PATH=.; ls
export PATH=.; ls
declare PATH=.; ls
IFS=x; ls
BASH_ENV=x bash -c ls
GIT_PAGER=rm git log
git -c core.pager=rm log
git -c alias.x='!rm' x
git --git-dir=evil status
git --exec-path=. status
git log --output=x
git log --ext-diff
git diff --no-index a b
git grep -Orm x
git grep --open-files-in-pager=rm x
git branch new
git branch -D x
git tag v1
git stash
git remote add x y
git config user.name x
git config --get-urlmatch a b
git fetch
git reflog expire --all
git rev-parse --parseopt
git --paginate log
git -C /tmp status
git -C / status
git bisect run rm
git submodule foreach rm
git archive -o x HEAD
git log --format='%G?'
git worktree add x
git stash list; git stash drop
git blame --contents /etc/passwd x
sort --outp=x y
sort -ox y
sort -uo x y
sort --compress-program=rm x
sort -T /tmp x
rg --pre rm x
rg --pre=rm x
rg --hostname-bin=rm x
rg -z x
rg x *
sed -i s/a/b/ x
sed 's/a/b/e' x
sed 's/a/b/w out' x
sed -n '1e rm' x
sed -n 'w out' x
sed -n '1,5p;e' x
sed -e 's/x/y/e' a
sed --in-place s/a/b/ x
sed -n -i 1p x
sed 's/a/b/;w x' a
sed -f x a
sed 'r /proc/1/environ' a
sed "1p
w x" a
awk '{system("rm")}'
awk '{print > "x"}' a
awk '{print | "sh"}' a
awk -f x a
awk 'BEGIN{while(("rm"|getline)>0);}'
awk '{print $1}' /inet/tcp/0/h/80
awk -v x=1 '{print}' a
jq -f x
jq --rawfile a /etc/shadow . x
jq -L . x
tree -o x
tree -R -H . -L 1
file -C -m x
date -s x
date 01010101
date --set=x
hostname x
hostname -F x
xxd -r a b
xxd a b
tee x
dd if=a of=b
less x
man ls
tar xf x
curl http://x
wget x
ping x
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
echo x | python3 -
python3 < x
python3 - <<< 'x'
python3 -Ic 'x'
python3 -m http.server
perl -e x
node -e x
node -p 1
ruby -e x
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
/usr/bin/../bin/rm x
./src/../ls
../../bin/rm x
~/x
r{m,x}
{rm,x}
$(echo rm) x
`echo rm` x
${x:-rm} y
if rm x; then ls; fi
while rm x; do ls; done
for i in $(rm x); do ls; done
for PATH in .; do ls; done
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
nohup rm x
nice rm x
nice -n 5 rm x
timeout 5 rm x
timeout -s KILL 5 rm x
stdbuf -oL rm x
setsid rm x
ionice -c3 rm x
watch rm x
parallel rm ::: x
flock x rm
script -c rm
unshare rm x
busybox rm x
sudo rm x
su -c rm
doas rm x
chroot . rm
strace rm x
ssh h rm
ls > /tmp/x
ls > ../x
ls > ~/x
ls >> $x
ls >& x
ls &> ../x
ls <> x
ls {fd}> x
ls 3> ../x
ls > .GIT/config
ls > src/.git
ls > .git
cd .git && echo x > config
cd .git; ls > hooks
cd $x && ls > y
cd - && ls
cd ..; ls > x
cd src || cd ..; ls > ../../x
for i in 1 2; do cd ..; ls > x; done
pushd ..; ls > x
cat < /proc/1/environ
cat /dev/sda
cat < /dev/tcp/a/1
ls > /dev/tcp/a/1
ls > /dev/sda
cat ~/.ssh/id_rsa
cat /etc/shadow
cat /root/.ssh/id_rsa
ps auxe
ps -o environ
ps e
LD_PRELOAD=x; ls
x=1 ls
LANG=zh_CN.GBK ls
LC_ALL=zh_CN.GB18030 bash -c 'ls'
TZ=$(rm x) ls
npm install
npm run x
npm ls --prefix x --userconfig=y
npm exec x
pip install x
pip list --outdated
docker run x
docker -H x ps
systemctl stop x
systemctl -H h status
cargo build
cargo --version
make
go run x
go version -m x
gcc x.c
java -version -jar x
node -v x
node -r ./x -v
python3 --version x
perl -v -e x
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
\time -o x ls
time cd ..; ls > x
ls '#'; rm x
echo 'a'\''b; rm x'; rm y
echo "$(echo ")"; rm x)"
echo $((1)); rm x
echo $( (rm x) )
echo $((rm x); ls)
git log --format=%x00 | xargs -0 rm
git show --textconv --output=x
git branch --edit-description
git branch --set-upstream-to=x
git tag -a v1 -m x
git ls-files --exclude-from=/proc/1/environ
git cat-file --batch
git cat-file --filters x
git -p log
git status --porcelain=v2 --column=x
sort --files0-from=x
head --bytes=5 /proc/self/environ
cat ./../../../proc/1/environ
tail -n +1 /proc/1/cmdline
grep -r . /proc
rg . /proc/1
rg x /
grep -rn token /etc
diff -r / /tmp
cat /proc/self/root/etc/shadow
cat /dev/stdin/../../1/environ
cat /dev/fd/3
cat /dev/stdin/../../../../proc/1/environ < src
cat < /dev/fd/3
xargs -n1 -I{} {} x
find -L / -name x -exec cat {} +
find /etc -name shadow -exec cat {} +
find . -name x -exec env rm {} \;
find . -name x -exec bash -c 'rm "$0"' {} \;
nice -n5 timeout 5 bash -c 'env rm x'
timeout 5 cd ..
env bash -c 'rm x'
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
ls > ~root/x
sed -n '/a/w ../x' README.md
sed '1!G;h;$!d' x
sed 's/a/b/;s/c/d/w x' y
sed "s/a/b/w x" y
sed 's,a,b,e' y
sed s/a/b/ -i y
sed -ni 1p y
sed -n 1p --in-place=.b y
awk -F: '{print $1 > "/tmp/x"}' y
awk '{print $1}' -f y z
awk 'BEGIN { "rm x" | getline }'
awk '@load "x"; {print}' y
awk -i x '{print $1}' y
awk --exec x '{print $1}'
jq -n 'input' --slurpfile a /proc/1/environ
jq . /proc/1/environ
date -f /proc/1/environ
date --file=/proc/1/environ
date -r x -s y
ps -eo pid,environ
ps -ef e
ps -eww e
npm ls --globalconfig=x
npm --userconfig=x ls
pip --isolated --python x list
pip -c x list
docker ps -H x
python3 -V -c x
node --version -e x
hostname -b x
stat --printf=%n x; rm y
which -a ls; rm y
test -f x -a -v 'a[$(id)]'
printf "$x" y
cat l*
sort x -o2>&1
sort *.md
rg x *.md
sed -n -e 'w x' 1p
wc -l */*/*
wc --files0-from=/proc/1/env*
grep -n x -f*
cat */etc/hosts
for d in */; do cat "$d/etc/hosts"; done
cat s*/*/../../x
grep -R x .
rg -L x
diff -r . src
cat a* b* c* d* e* f* g* h* i* j* k* m* n* p* q* r* s* t* u* v* w* x*
find . -exec cat {} +
find -L src -type f -exec cat {} +
find $x -exec ls {} +
find src -name
echo {1..99999}
echo {a,b}{a,b}{a,b}
sh -c 'ls'
dash -c 'ls'
command ls
REPLY=ls; read <<< rm; $REPLY x
FUNCNAME=ls; $FUNCNAME rm x
{ A=ls; } < missing; $A rm x
(A=ls); $A rm x
echo $((1/0)); A=ls
ls > a b
xargs -I{} -n1 echo {}
xargs --max-lines rm ls
nice -n
timeout x ls
timeout --kill-after ls
env $x ls
env -u x ls
time
jq --arg a
git config edit
git tag --sort=signature
ps -axe
ps ax -e
fd -l x
diff -l a b
npm ls
hexdump -vfx a
ip addr flush dev eth0
awk '{print | "sh"}' a
awk '{ARGV[1]="/proc/1/environ"} {print}' a
awk '/ / {system("x")} / /' a
awk 'getline < $1' a
awk '{print $1 > $2}' a
sed -n -e 1p -e 'w x' a
""".splitlines()[1:]
