# bash completion for coop: verbs, options, and the ids and tags of what there is now. Verbs and options are asked of coop
# itself, so that this file never has to follow them.

_coop_words() {
	local word
	while IFS= read -r word; do
		COMPREPLY+=("$word")
	done < <(compgen -W "$1" -- "$2")
}

# Ids and tags (with -a those of finished processes too), from the JSON of ps: a member of a record is "id":"…" or "tag":"…". Looking does not start a keeper.
_coop_ids() {
	"$@" 2>/dev/null | grep -oE '"(id|tag)":"[^"\\]*"' | cut -d'"' -f4 | sort -u
}

# The words after an option that takes one of a few, from the line of help: "--stream stdout|stderr".
_coop_choices() {
	"$1" help "$2" 2>/dev/null |
		sed -nE "s/^ +(-., )?$3 ([a-z_]+(\\|[a-z_]+)+).*/\\2/p" | tr '|' ' '
}

# The settings of a keeper, from help: "  max_running   …".
_coop_settings() {
	"$1" help keeper 2>/dev/null | sed -nE 's/^  ([a-z]+(_[a-z]+)+) +.*/\1=/p'
}

# The command line that begins at word $1, completed as one of its own where bash-completion is there to do it.
_coop_command() {
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif ((COMP_CWORD == $1)); then
		mapfile -t COMPREPLY < <(compgen -c -- "$2")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$2")
	fi
}

_coop() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} coop=${COMP_WORDS[0]} verb=${COMP_WORDS[1]-}
	local options word i
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_coop_words "$("$coop" help --words 2>/dev/null) --help --version" "$cur"
		return
	fi
	options=$("$coop" help --words "$verb" 2>/dev/null)
	if [[ $verb == run ]]; then
		# Behind the first word that is no option stands somebody else's command line.
		for ((i = 2; i < COMP_CWORD; i++)); do
			word=${COMP_WORDS[i]}
			# bash takes "--name=value" apart at the "=".
			[[ $word == = ]] && ((i++)) && continue
			if [[ $word == -?* && $word != -- ]]; then
				[[ $'\n'$options$'\n' == *$'\n'"$word="$'\n'* && ${COMP_WORDS[i + 1]-} != = ]] && ((i++))
				continue
			fi
			[[ $word == -- ]] && ((i++))
			_coop_command "$i" "$cur"
			return
		done
	fi
	if [[ $prev == --* ]]; then
		local choices
		choices=$(_coop_choices "$coop" "$verb" "$prev")
		if [[ -n $choices ]]; then
			_coop_words "$choices" "$cur"
			return
		fi
		case $prev in
		--set)
			# A value is to follow: no space behind the "=".
			_coop_words "$(_coop_settings "$coop")" "$cur"
			compopt -o nospace
			return
			;;
		--cwd)
			mapfile -t COMPREPLY < <(compgen -d -- "$cur")
			return
			;;
		--data)
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			return
			;;
		esac
	fi
	if [[ $cur == -* ]]; then
		_coop_words "$(grep -E '^--' <<<"${options//=/}")" "$cur"
		return
	fi
	case $verb in
	run) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	help) _coop_words "$("$coop" help --words 2>/dev/null)" "$cur" ;;
	signal)
		if ((COMP_CWORD > 2)); then
			_coop_words "TERM INT HUP KILL STOP CONT QUIT USR1 USR2" "${cur#SIG}"
		else
			_coop_words "$(_coop_ids "$coop" ps --json)" "$cur"
		fi
		;;
	stdin | stop | attach) _coop_words "$(_coop_ids "$coop" ps --json)" "$cur" ;;
	status | logs | wait | kill | rm) _coop_words "$(_coop_ids "$coop" ps --json -a)" "$cur" ;;
	op)
		((COMP_CWORD == 2)) &&
			_coop_words "spawn list status wait read follow write_stdin close_stdin resize signal kill stop release keep gc info \
shutdown list_shells describe" "$cur"
		;;
	esac
}

complete -F _coop coop
