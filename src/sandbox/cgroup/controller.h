/* The controllers of control groups that limits are made with. */
#ifndef COOP_SANDBOX_CONTROLLER_H
#define COOP_SANDBOX_CONTROLLER_H

enum coop_controller { COOP_CG_MEMORY, COOP_CG_CPU, COOP_CG_PIDS, COOP_CG_FREEZER, COOP_CG_COUNT };

#define COOP_CG_BIT(controller) (1u << (controller))
#define COOP_CG_PATH_MAX 4096u /* of a group's folder, with the NUL */

#endif
