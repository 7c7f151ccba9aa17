/* A doubly linked list of structs that embed their links. */
#ifndef COOP_BASE_LIST_H
#define COOP_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A head points to itself when empty; a link that is in no list has next NULL. */
struct coop_link {
	struct coop_link *next, *prev;
};

#define COOP_LIST_ITEM(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void coop_list_init(struct coop_link *head)
{
	head->next = head->prev = head;
}

static inline bool coop_list_empty(const struct coop_link *head)
{
	return head->next == head;
}

static inline void coop_list_add(struct coop_link *head, struct coop_link *link)
{
	link->prev = head->prev;
	link->next = head;
	head->prev->next = link;
	head->prev = link;
}

/* At the front. */
static inline void coop_list_push(struct coop_link *head, struct coop_link *link)
{
	coop_list_add(head->next, link);
}

/* Does nothing to a link that is in no list. */
static inline void coop_list_remove(struct coop_link *link)
{
	if (!link->next)
		return;
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link->next = link->prev = NULL;
}

/* The first item; NULL: there is none. */
#define COOP_LIST_FIRST(head, type, member) \
	(coop_list_empty(head) ? NULL : COOP_LIST_ITEM((head)->next, type, member))

/* The loop body may remove the current link, and no other. */
#define COOP_LIST_EACH(head, link)                                                       \
	for (struct coop_link *link = (head)->next, *next_ = link->next; link != (head); \
	     link = next_, next_ = link->next)

#endif
