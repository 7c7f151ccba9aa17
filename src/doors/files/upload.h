/* How files of unfinished uploads are called: whoever watches a directory is not told of them. If
 * coop-files is killed they stay. */
#ifndef COOP_FILES_UPLOAD_H
#define COOP_FILES_UPLOAD_H

#define FILES_DRAFT ".coop-upload-"
#define FILES_DRAFT_REPLACES "r" /* follows where a file was there before */

#endif
