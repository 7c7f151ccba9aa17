/* A process that is only there: static, so that thousands of them fit. */
#include <unistd.h>

int main(void)
{
	for (;;)
		(void)pause();
}
