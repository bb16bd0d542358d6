"""Tiny logs of our own in several formats, for tests that are about all of them."""

from __future__ import annotations

import json

SLURM = """\
JobID|Submit|Start|End|Elapsed|State|AllocTRES|User|Account|NodeList
1|2026-03-02T08:00:00|2026-03-02T08:00:05|2026-03-02T10:00:05|02:00:00|COMPLETED|cpu=3,gres/gpu=8,mem=10M|ann|nlp|n1
2|2026-03-02T08:05:00|Unknown|Unknown|00:00:00|PENDING||bob|nlp|None assigned
3_1|2026-03-02T09:05:00|2026-03-02T09:06:00|2026-03-03T09:06:00|1-00:00:00|CANCELLED by 10|gres/gpu=2|bob|cv|n2
"""
"""Two jobs of 8 and 2 GPUs, Monday morning, and one that never started (row 2)."""

SWF = """\
; MaxProcs: 100
1 100 30 600 4 -1 -1 8 900 -1 1 7 3 -1 -1 -1 -1 -1
2  50 -1 -1 -1 -1 -1 2 60 -1 5 8 3 -1 1 2 1 10
3 200.5 0 0 -1 -1 -1 2 -1 -1 0 8 -1 -1 -1 -1 -1 -1
"""

TIRESIAS = """\
job_id,num_gpu,submit_time,iterations,model_name,duration,interval
0,1,0,600,vgg19,160,30
1,8,30,130,"vgg ""11"", large",150.123456,20
"""

HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
11,u1,vcA,16,64,2,COMPLETED,2020-06-09 18:00:00,2020-06-09 18:01:00,2020-06-09 19:01:00,3600,60
12,u2,vcA,0,4,1,FAILED,2020-06-09 18:00:10,2020-06-09 18:00:10,2020-06-09 18:00:20,10,0
14,u2,vcB,8,4,1,CANCELLED,2020-06-09 18:00:10,,,,
15,u2,vcB,8,4,1,RUNNING,2020-06-09 18:00:10,2020-06-09 18:00:20,,30,10
"""

SPOT = """\
job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
501,13,A10,20.0,1.0,1,0.0,2764799.0,HP
503,57,A10,4.25,0.5,3,9589664.0,10.0,Spot
"""

PHILLY = json.dumps(
    [
        {
            "status": "Pass",
            "vc": "ee9e8c",
            "jobid": "application_1506638472019_10258",
            "attempts": [
                {
                    "start_time": "2017-10-07 01:02:00",
                    "end_time": "2017-10-07 02:02:00",
                    "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}],
                }
            ],
            "submitted_time": "2017-10-07 01:00:00",
            "user": "ce2f4c",
        }
    ]
)

PAI_INSTANCES = """\
aa,worker,n1,w1,i1,Terminated,1110.0,1990.0,m1
aa,worker,n2,w2,i1,Terminated,1111.0,1980.0,m2
bb,worker,n4,w4,i2,Running,1200.0,,m3
"""
"""Jobs without their GPUs: those stand in another table."""

DATED = """\
job_id,submit_time,duration,num_gpus,memory_gb,start_time,node,preemptible
007,2024-05-01T12:00:00.000001+02:00,1.000001,4,0.3,2024-05-01T12:00:07+02:00,"n1,n2",no
8,2024-05-01T12:30:00+02:00,1h,1,,,,
"""

LOGS = {
    "sacct.txt": SLURM,
    "log.swf": SWF,
    "tiresias.csv": TIRESIAS,
    "cluster_log.csv": HELIOS,
    "job_info_df.csv": SPOT,
    "cluster_job_log": PHILLY,
    "dated.csv": DATED,
    "naive.csv": DATED.replace("+02:00", ""),
}
"""Logs with GPUs, and traces in the schema with dates, by the names of their files."""
