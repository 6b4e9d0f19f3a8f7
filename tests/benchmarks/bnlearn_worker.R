# Graphs by bnlearn's tabu search, as a JSON-in, JSON-out worker process.
#
# Run it with an Rscript that has bnlearn and jsonlite. The request on stdin: "data" (path of a comma-separated table
# with a header row) and "bootstraps" (0 for one search over all rows). The score is Gaussian BIC, all else as bnlearn
# has it by default. The reply: the CPDAG of the DAG found, or the frequency of each directed edge over resamples, in
# which undirected edges of an equivalence class count half each way; and the CPU seconds of the search.
suppressMessages(library(bnlearn))
request <- jsonlite::fromJSON(file("stdin"))
table <- read.csv(request$data)
table[] <- lapply(table, as.numeric)
set.seed(1)
began <- proc.time()
reply <- list(version = jsonlite::unbox(as.character(packageVersion("bnlearn"))))
if (request$bootstraps == 0) {
  reply$cpdag <- unname(amat(cpdag(tabu(table))))
} else {
  strength <- boot.strength(table, R = request$bootstraps, algorithm = "tabu", cpdag = TRUE)
  edges <- matrix(0, ncol(table), ncol(table), dimnames = list(names(table), names(table)))
  edges[cbind(strength$from, strength$to)] <- strength$strength * strength$direction
  reply$edges <- unname(edges)
}
taken <- proc.time() - began
reply$cpu_seconds <- jsonlite::unbox(unname(taken[["user.self"]] + taken[["sys.self"]]))
cat(jsonlite::toJSON(reply, digits = NA))
