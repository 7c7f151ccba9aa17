# bash completion for coop: verbs, options, and the ids and tags of what there is now. Verbs and options are asked of coop
# itself, so that this file never has to follow them.

_coop_words() {
	local word
	while IFS= read -r word; do
		COMPREPLY+=("$word")
	done < <(compgen -W "$1" -- "$2")
}

# Ids and tags (with -a those of finished processes too), from the JSON of ps: a member of a record is "id":"…" or "tag":"…". ps -a may start a keeper, so it is not asked without one.
_coop_ids() {
	"$@" 2>/dev/null | grep -oE '"(id|tag)":"[^"\\]*"' | cut -d'"' -f4 | sort -u
}

# One member of each object in the JSON of a verb that lists: "path":"…", "id":7. Such a verb may start a keeper, so it is not asked without one.
_coop_members() {
	local member=$1
	shift
	"$1" info >/dev/null 2>&1 || return
	"$@" --json 2>/dev/null | grep -oE "\"$member\":(\"[^\"\\]*\"|[0-9]+)" | sed -E 's/^[^:]*://; s/"//g' | sort -u
}

# The words after an option ($2) that takes one of a few, from the line of help on a verb: "--stream stdout|stderr".
_coop_choices() {
	local coop=$1 option=$2
	shift 2
	"$coop" help "$@" 2>/dev/null |
		sed -nE "s/^ +(-., )?$option ([a-z_-]+(\\|[a-z_-]+)+).*/\\2/p" | tr '|' ' '
}

# The settings of a keeper, from help: "  max_running   …".
_coop_settings() {
	"$1" help keeper 2>/dev/null | sed -nE 's/^  ([a-z]+(_[a-z]+)+) +.*/\1=/p'
}

# The profiles of the operator's own, from the sections of the configuration.
_coop_profiles() {
	local conf=${XDG_CONFIG_HOME:-$HOME/.config}/coop/coop.conf
	((EUID == 0)) && conf=/etc/coop/coop.conf
	sed -nE 's/^\[profile +([^] ]+) *\].*/\1/p' "${COOP_CONF:-$conf}" 2>/dev/null
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

# The value of the option in front, if there is something to offer for it.
_coop_value() {
	local coop=$1 option=$2 cur=$3 choices word
	shift 3
	choices=$(_coop_choices "$coop" "$option" "$@")
	if [[ -n $choices ]]; then
		_coop_words "$choices" "$cur"
		return 0
	fi
	case $option in
	--set)
		# A value is to follow: no space behind the "=".
		_coop_words "$(_coop_settings "$coop")" "$cur"
		compopt -o nospace
		;;
	--risk)
		for word in destructive write_intent curl_pipe_shell credential_file_read network_exfil sudo package_install \
			git_force_push process_kill outside_workspace deny_pattern; do
			choices+="$word= "
		done
		_coop_words "$choices" "$cur"
		compopt -o nospace
		;;
	--unset)
		_coop_words "policy sandbox limits $("$coop" help --words "$@" 2>/dev/null | grep -vE '^--(unset|principal|token-file)|^-.=|^--json|^--help' |
			tr -d = | cut -c3-)" "$cur"
		;;
	--agent | --parent) _coop_words "$(_coop_members path "$coop" agent ls)" "$cur" ;;
	--session) _coop_words "$(_coop_members id "$coop" session ls)" "$cur" ;;
	--profile) _coop_words "read-only workspace-write full $(_coop_profiles)" "$cur" ;;
	--require | --tolerate)
		_coop_words "files network identity ipc privileges seccomp kill memory_bytes cpu_quota max_pids max_cpu_secs \
max_open_files max_file_bytes tmp_bytes" "$cur"
		;;
	--cwd | --workspace | --write) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	--read | --deny-read | --deny-write | --protect) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--data | --token-file | --tls-cert | --tls-key | --unix) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	*) return 1 ;;
	esac
}

# The word that is no option.
_coop_operand() {
	local coop=$1 verb=$2 cur=$3 first=$4
	case $verb in
	run | 'policy check') mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	help)
		if ((COMP_CWORD == 2)); then
			_coop_words "$("$coop" help --words 2>/dev/null)" "$cur"
		else
			_coop_words "$("$coop" help --words "${COMP_WORDS[2]}" 2>/dev/null | grep -v '^-')" "$cur"
		fi
		;;
	signal)
		if ((COMP_CWORD > first)); then
			_coop_words "TERM INT HUP KILL STOP CONT QUIT USR1 USR2" "${cur#SIG}"
		else
			_coop_words "$(_coop_ids "$coop" ps --json)" "$cur"
		fi
		;;
	stdin | stop | attach | freeze | thaw) _coop_words "$(_coop_ids "$coop" ps --json)" "$cur" ;;
	status | logs | wait | kill | rm) _coop_words "$("$coop" info >/dev/null 2>&1 && _coop_ids "$coop" ps --json -a)" "$cur" ;;
	'agent show' | 'agent set' | 'agent rm' | 'token new') _coop_words "$(_coop_members path "$coop" agent ls)" "$cur" ;;
	'token revoke') _coop_words "$(_coop_members id "$coop" token ls)" "$cur" ;;
	'session end') _coop_words "$(_coop_members id "$coop" session ls)" "$cur" ;;
	op)
		((COMP_CWORD == first)) &&
			_coop_words "spawn list status wait read follow write_stdin close_stdin resize signal kill stop release keep gc info \
shutdown list_shells describe login agent_add agent_list agent_show agent_set agent_remove token_new token_list token_revoke \
session_new session_end session_list cancel history follow_events audit_tail audit_verify reload check doctor freeze thaw" "$cur"
		;;
	esac
}

_coop() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} coop=${COMP_WORDS[0]}
	local options word i verb=("${COMP_WORDS[1]-}") first=2
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_coop_words "$("$coop" help --words 2>/dev/null) --help --version" "$cur"
		return
	fi
	options=$("$coop" help --words "${verb[@]}" 2>/dev/null)
	if [[ -n $options && $options != -* ]]; then
		# A verb that is made of others.
		if ((COMP_CWORD == 2)); then
			_coop_words "$options" "$cur"
			return
		fi
		verb+=("${COMP_WORDS[2]}")
		first=3
		options=$("$coop" help --words "${verb[@]}" 2>/dev/null)
	fi
	if [[ ${verb[*]} == run || ${verb[*]} == 'policy check' ]]; then
		# Behind the first word that is no option stands somebody else's command line.
		for ((i = first; i < COMP_CWORD; i++)); do
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
	[[ $prev == --* ]] && _coop_value "$coop" "$prev" "$cur" "${verb[@]}" && return
	if [[ $cur == -* ]]; then
		_coop_words "$(grep -E '^--' <<<"${options//=/}")" "$cur"
		return
	fi
	_coop_operand "$coop" "${verb[*]}" "$cur" "$first"
}

complete -F _coop coop
