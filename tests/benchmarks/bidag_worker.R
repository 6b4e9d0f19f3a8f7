# Edge probabilities by BiDAG's partition MCMC, as a JSON-in, JSON-out worker process.
#
# Run it with an Rscript that has BiDAG and jsonlite. The request on stdin: "data" (path of a comma-separated table with
# a header row) and "seed". The score is BGe with a uniform prior over DAGs, and all else as BiDAG has it by default: a
# search space by PC and iterative order MCMC, and one chain of partition MCMC over it, from the best DAG of that
# search. The reply: the share of the DAGs with each directed edge after a burn-in of a fifth, how many DAGs were kept of
# how many steps, and the CPU seconds.
suppressMessages(library(BiDAG))
request <- jsonlite::fromJSON(file("stdin"))
table <- read.csv(request$data)
table[] <- lapply(table, as.numeric)
set.seed(request$seed)
began <- proc.time()
# What is printed on the way would end up in the reply.
invisible(capture.output(chain <- sampleBN(scoreparameters("bge", table), algorithm = "partition")))
edges <- unname(as.matrix(edgep(chain, burnin = 0.2)))
taken <- proc.time() - began
reply <- list(
  edges = edges,
  dags = jsonlite::unbox(length(chain$traceadd$incidence)),
  steps = jsonlite::unbox(chain$info$iterations),
  version = jsonlite::unbox(as.character(packageVersion("BiDAG"))),
  cpu_seconds = jsonlite::unbox(unname(taken[["user.self"]] + taken[["sys.self"]]))
)
cat(jsonlite::toJSON(reply, digits = NA))
